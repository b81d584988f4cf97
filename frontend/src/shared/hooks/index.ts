export { createStore, useStore } from './store'
export type { Store } from './store'
export { NARROW, useMediaQuery } from './useMediaQuery'
