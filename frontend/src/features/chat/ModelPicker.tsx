import { Menu, type MenuItem } from '@/shared/ui'
import { IconChevronDown } from '@/shared/ui/icons'
import type { Model } from '@/shared/api'
import styles from './Composer.module.css'
import { AUTO, chooseModel, roughly, type ModelChoice } from './models'

export function ModelPicker({ choice }: { choice: ModelChoice }) {
  const { models, chosen } = choice
  const name = chosen === AUTO ? 'Auto' : (models.find((model) => model.id === chosen)?.name ?? chosen)
  const items: MenuItem[] = [
    {
      key: AUTO,
      label: 'Auto',
      hint: 'Parley picks the model for each question.',
      checked: chosen === AUTO,
      onSelect: () => chooseModel(AUTO),
    },
    ...models.map((model, index) => ({
      key: model.id,
      label: (
        <>
          {model.name}
          {model.demo && <span className={styles.tag}>Demo</span>}
        </>
      ),
      text: model.name,
      hint: hintOf(model),
      checked: chosen === model.id,
      separator: index === 0,
      onSelect: () => chooseModel(model.id),
    })),
  ]
  return (
    <Menu
      label="Model"
      wide
      items={items}
      renderTrigger={(trigger) => (
        <button type="button" className={styles.model} aria-label={`Model: ${name}`} title="Choose the model" {...trigger}>
          <span className={styles.modelName}>{name}</span>
          <IconChevronDown aria-hidden />
        </button>
      )}
    />
  )
}

function hintOf(model: Model): string {
  if (model.state === 'loading') return model.eta_s === null ? 'Loading' : `Loading, ${roughly(model.eta_s)} left`
  if (model.state === 'unavailable') return model.note ? `Not available. ${model.note}` : 'Not available'
  return model.note
}
