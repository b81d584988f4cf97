import { Button, Dialog, Shortcuts } from '@/shared/ui'

export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose} footer={<Button onClick={onClose}>Close</Button>}>
      <Shortcuts />
    </Dialog>
  )
}
