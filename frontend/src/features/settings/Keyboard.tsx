import { Shortcuts } from '@/shared/ui'

export function Keyboard() {
  return <Shortcuts />
}
