export function App() {
  return <h1>Parley</h1>
}
