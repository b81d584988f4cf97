export { default } from './RunDetails'
