import { render, screen } from '@testing-library/react'
import { expect, test } from 'vitest'
import { App } from './App'

test('the shell renders', () => {
  render(<App />)
  expect(screen.getByText('Parley')).toBeTruthy()
})
