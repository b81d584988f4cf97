/**
 * The server's objects as the client sees them. Names and shapes follow the native API; nothing here is the client's own.
 * Replaced field by field with src/generated/ (from the OpenAPI schema) as the schema covers it.
 */
export type Id = string
/** ISO 8601, UTC. */
export type Timestamp = string

export interface Page<T> {
  results: T[]
  next: string | null
}

export interface Site {
  name: string
  version: string
  setup_needed: boolean
  signup: 'first' | 'open'
  needs_https: boolean
  /** Whether forgotten passwords can be reset by mail. */
  mail: boolean
}

export interface Me {
  user: { id: Id; email: string; name: string; is_operator: boolean }
  organization: { id: Id; name: string; role: 'owner' | 'admin' | 'member'; tier: 'free' | 'plus' | 'enterprise' }
}

export interface ApiKey {
  id: Id
  name: string
  prefix: string
  created_at: Timestamp
  last_used_at: Timestamp | null
  expires_at: Timestamp | null
  /** Present once, in the answer to its creation. */
  key?: string
}

export interface Model {
  id: string
  name: string
  state: 'ready' | 'loading' | 'unavailable'
  eta_s: number | null
  demo: boolean
  context_length: number
  note: string
  replicas: { ready: number; total: number }
}

export interface ModelList {
  results: Model[]
  default: string
}

export interface Conversation {
  id: Id
  title: string
  pinned: boolean
  archived: boolean
  deleted_at: Timestamp | null
  head_message_id: Id | null
  created_at: Timestamp
  updated_at: Timestamp
  active_run_id: Id | null
}

/** A rectangle as fractions 0..1 of the page: left, top, right, bottom; origin top-left. */
export type Box = [x0: number, y0: number, x1: number, y1: number]

export interface Citation {
  n: number
  passage_id: Id
  file_id: Id
  file_name: string
  page: number
  boxes: Box[]
  text: string
  heading: string
}

export interface Passage extends Citation {
  source: 'digital' | 'ocr'
}

export interface UnreadyFile {
  file_id: Id
  file_name: string
  pages_pending: number[]
  pages_failed: number[]
}

export interface RunError {
  code: string
  message: string
  retry_after_s?: number | null
}

export type MessageStatus = 'queued' | 'running' | 'completed' | 'incomplete' | 'cancelled' | 'failed'

export interface MessageFile {
  id: Id
  name: string
  page_count: number | null
  state: FileState
}

export interface Message {
  id: Id
  conversation_id: Id
  parent_id: Id | null
  seq: number
  role: 'user' | 'assistant'
  text: string
  status: MessageStatus
  run_id: Id | null
  model: string | null
  files: MessageFile[]
  citations: Citation[]
  error: RunError | null
  created_at: Timestamp
  finished_at: Timestamp | null
}

export type RunState = MessageStatus | 'waiting_approval'

export interface Run {
  id: Id
  conversation_id: Id
  question_id: Id
  answer_id: Id
  state: RunState
  model_requested: string
  model: string | null
  replica: string | null
  queue_position: number | null
  estimated_wait_s: number | null
  attempt: number
  ttft_ms: number | null
  prompt_tokens: number | null
  cached_tokens: number | null
  completion_tokens: number | null
  error: RunError | null
  created_at: Timestamp
  started_at: Timestamp | null
  finished_at: Timestamp | null
}

export interface Posted {
  question: Message
  answer: Message
  run: Run
}

export interface Regenerated {
  answer: Message
  run: Run
}

export type FileKind = 'pdf' | 'docx' | 'text' | 'markdown' | 'image'
export type FileState = 'uploading' | 'processing' | 'ready' | 'partial' | 'failed' | 'deleted'
export type FileStage = 'upload' | 'verify' | 'parse' | 'ocr' | 'index' | 'embed'

/** Named FileRecord because `File` is the browser's own. */
export interface FileRecord {
  id: Id
  name: string
  size: number
  content_type: string
  kind: FileKind
  state: FileState
  stage: FileStage | null
  page_count: number | null
  pages_ready: number
  pages_failed: number[]
  searchable: 'none' | 'keyword' | 'hybrid'
  error: { code: string; message: string } | null
  /** Null until the file was checked. */
  scanner: 'clamd' | 'signatures' | null
  created_at: Timestamp
}

export interface UploadPlan {
  part_size: number
  parts: { number: number; url: string; size: number }[]
  expires_at: Timestamp
}

export interface UploadStatus extends UploadPlan {
  received: { number: number; etag: string; size: number }[]
}

export interface PageRecord {
  number: number
  state: 'pending' | 'ready' | 'ocr' | 'failed'
  source: 'digital' | 'ocr' | null
  width: number | null
  height: number | null
  error: { code: string; message: string } | null
  /** Only from /pages/{n}. */
  text?: string
}

export type Notification =
  | { type: 'conversation'; conversation: Conversation }
  | { type: 'file'; file: FileRecord }
  | { type: 'run'; run: Run }
  | { type: 'model'; model: Model }
