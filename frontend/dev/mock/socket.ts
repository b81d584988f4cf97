/** Just enough WebSocket for notifications: handshake, text frames out, ping/pong text in. */
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { State } from './state.ts'

export function acceptSocket(state: State, request: IncomingMessage, socket: Duplex): void {
  const key = createHash('sha1')
    .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${key}\r\n\r\n`,
  )
  const send = (text: string) => socket.write(frame(text))
  state.sockets.add(send)
  socket.on('data', (data: Buffer) => {
    const opcode = (data[0] ?? 0) & 0x0f
    if (opcode === 8) socket.end()
    if (opcode === 1) send('pong')
  })
  const gone = () => state.sockets.delete(send)
  socket.on('close', gone)
  socket.on('error', gone)
}

function frame(text: string): Buffer {
  const payload = Buffer.from(text)
  const long = payload.length > 125
  const head = Buffer.alloc(long ? 4 : 2)
  head[0] = 0x81
  head[1] = long ? 126 : payload.length
  if (long) head.writeUInt16BE(payload.length, 2)
  return Buffer.concat([head, payload])
}
