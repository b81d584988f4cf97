/**
 * Keeps this tab in step with the server: a WebSocket with back-off, and a regular `onSync` while it cannot be had.
 * Notifications are hints; after every gap the reader syncs from REST, so a lost one costs time and not truth.
 */
import type { Notification } from '@/shared/api/types'
import { Backoff, onWake, type BackoffOptions } from './backoff'

export interface NotificationHandlers {
  onNotification: (notification: Notification) => void
  /** Something may have been missed: read lists and the open conversation again. */
  onSync: () => void
  onStatus?: (live: boolean) => void
}

export interface NotificationOptions extends BackoffOptions {
  url?: string
  WebSocket?: new (url: string) => WebSocket
  pingMs?: number
  pollMs?: number
}

const TYPES: ReadonlySet<string> = new Set<Notification['type']>(['conversation', 'file', 'run', 'model'])
const PING_MS = 25_000
const POLL_MS = 10_000
/** Polling starts after so many failures in a row: a restart alone should not cause it. */
const FAILURES_BEFORE_POLLING = 2

export function openNotifications(handlers: NotificationHandlers, options: NotificationOptions = {}): () => void {
  const channel = new Channel(handlers, options)
  channel.connect()
  return () => channel.close()
}

class Channel {
  #socket: WebSocket | null = null
  #closed = false
  #everOpen = false
  #retry: ReturnType<typeof setTimeout> | undefined
  #ping: ReturnType<typeof setInterval> | undefined
  #poll: ReturnType<typeof setInterval> | undefined
  #unanswered = 0
  readonly #backoff: Backoff
  readonly #stopWake: () => void

  constructor(
    private readonly handlers: NotificationHandlers,
    private readonly options: NotificationOptions,
  ) {
    this.#backoff = new Backoff({ baseMs: 800, maxMs: 30_000, ...options })
    this.#stopWake = onWake(() => this.#wake())
  }

  connect(): void {
    if (this.#closed) return
    clearTimeout(this.#retry)
    this.#retry = undefined
    this.#drop()
    const Socket = this.options.WebSocket ?? WebSocket
    let socket: WebSocket
    try {
      socket = new Socket(this.options.url ?? defaultUrl())
    } catch {
      return this.#later()
    }
    this.#socket = socket
    socket.addEventListener('open', () => this.#opened(socket))
    socket.addEventListener('message', (event) => this.#received(socket, event))
    socket.addEventListener('close', () => {
      if (this.#socket === socket) this.#later()
    })
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#retry)
    clearInterval(this.#poll)
    this.#stopWake()
    this.#drop()
  }

  #opened(socket: WebSocket): void {
    if (this.#socket !== socket) return
    this.#backoff.reset()
    this.#unanswered = 0
    clearInterval(this.#poll)
    this.#poll = undefined
    this.handlers.onStatus?.(true)
    // The page has just read everything when it first opens; later openings follow a gap.
    if (this.#everOpen) this.handlers.onSync()
    this.#everOpen = true
    this.#ping = setInterval(() => {
      if (this.#unanswered >= 2) return this.#later()
      this.#unanswered += 1
      socket.send('ping')
    }, this.options.pingMs ?? PING_MS)
  }

  #received(socket: WebSocket, event: MessageEvent): void {
    if (this.#socket !== socket) return
    this.#unanswered = 0
    if (typeof event.data !== 'string' || event.data === 'pong') return
    let value: unknown
    try {
      value = JSON.parse(event.data)
    } catch {
      return
    }
    const type = (value as { type?: unknown } | null)?.type
    if (typeof type === 'string' && TYPES.has(type)) this.handlers.onNotification(value as Notification)
  }

  #later(): void {
    if (this.#closed) return
    this.#drop()
    this.handlers.onStatus?.(false)
    const wait = this.#backoff.next()
    if (this.#backoff.failures >= FAILURES_BEFORE_POLLING) this.#startPolling()
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => this.connect(), wait)
  }

  #startPolling(): void {
    if (this.#poll) return
    // A first opening that comes after polling follows a gap too.
    this.#everOpen = true
    this.#poll = setInterval(() => {
      if (document.visibilityState === 'visible') this.handlers.onSync()
    }, this.options.pollMs ?? POLL_MS)
  }

  #wake(): void {
    if (this.#closed) return
    // A socket that slept with the machine looks open and is dead: ask it, and do not wait for the answer to sync.
    if (this.#socket?.readyState === 1) {
      this.#unanswered = Math.max(this.#unanswered, 1)
      this.#socket.send('ping')
      return
    }
    this.#backoff.reset()
    this.connect()
  }

  /** Let go of the socket without hearing its close event. */
  #drop(): void {
    clearInterval(this.#ping)
    this.#ping = undefined
    const socket = this.#socket
    this.#socket = null
    if (socket && socket.readyState < 2) socket.close()
  }
}

function defaultUrl(): string {
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws'
  return `${scheme}://${location.host}/ws/notifications`
}
