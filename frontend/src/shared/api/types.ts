/**
 * The server's objects under the names that the page uses. Shapes come from the API's schema (src/generated); what is
 * narrower here says why.
 */
import type { components } from '@/generated/api'

type Schemas = components['schemas']

export type Id = string
/** ISO 8601, UTC. */
export type Timestamp = string

export interface Page<T> {
  results: T[]
  next: string | null
}

export type Site = Schemas['Site']
export type Me = Schemas['Me']
/** `key` is present once, in the answer to its creation. */
export type ApiKey = Schemas['Key'] & { key?: string }
export type Model = Schemas['Model']
export type ModelList = Schemas['ModelList']
export type FileUsage = Schemas['FileUsage']
export type Conversation = Schemas['Conversation']

/** A rectangle as fractions 0..1 of the page: left, top, right, bottom; origin top-left. The schema cannot say "four". */
export type Box = [x0: number, y0: number, x1: number, y1: number]
export type Citation = Omit<Schemas['Citation'], 'boxes'> & { boxes: Box[] }
/** What retrieval gave to the model; only streams carry it. */
export type Passage = Citation

export type UnreadyFile = Schemas['UnreadyFile']
/** A file that was not read whole, with what was left out in sentences. */
export type LeftOut = Schemas['LeftOut']
/** What of whole files the model was given, for a question about them. */
export type Survey = Schemas['Survey']

/** What a reader of a run is told besides its text. The schema cannot say which field belongs to which kind. */
export type RunNotice =
  /** Another replica went on with the answer at this offset. */
  | { kind: 'reconstructed'; at: number; attempt: number; replica: string | null; other_weights?: boolean }
  /** There are no vectors yet: only the keyword index answered. */
  | { kind: 'keyword_only' }
  /** No vectors could be used, because what makes them is away. */
  | { kind: 'keyword_away' }
  /** Vectors of some passages could not be used, because what made them is away. */
  | { kind: 'keyword_partly' }
  /** Parts of the files that could not be searched yet. */
  | { kind: 'unready'; files: UnreadyFile[] }
  /** Files that were searched but not read whole. */
  | { kind: 'left_out'; left_out: LeftOut[] }
  /** The question was about whole files, of which perhaps not everything could be given. */
  | { kind: 'survey'; survey: Survey }
  /** The answer of the first model failed its checks. */
  | { kind: 'escalated'; from_model: string; to_model: string; why: string }

export type RunError = Schemas['Error']
export type MessageFile = Schemas['AttachedFile']
export type Message = Omit<Schemas['Message'], 'citations' | 'notices'> & { citations: Citation[]; notices: RunNotice[] }
export type MessageStatus = Message['status']
export type Run = Schemas['Run']
export type RunDetail = Schemas['RunDetail']
export type RunContext = Schemas['RunContext']
export type RunState = Run['state']

export interface Posted {
  question: Message
  answer: Message
  run: Run
}

export interface Regenerated {
  answer: Message
  run: Run
}

/** Named FileRecord because `File` is the browser's own. */
export type FileRecord = Schemas['File']
export type FileKind = FileRecord['kind']
export type FileState = FileRecord['state']
export type FileStage = NonNullable<FileRecord['stage']>
export type FileSummary = Schemas['Summary']
export type UploadPlan = Omit<Schemas['Upload'], 'received'>
export type UploadStatus = Schemas['Upload']
/** `text` and `row_numbers` come from /pages/{n} only. */
export type PageRecord = Schemas['Page'] & Partial<Pick<Schemas['PageText'], 'text' | 'row_numbers'>>

/** A table of a file. Named TableRecord because "table" is an element of the page. */
export type TableRecord = Schemas['Table']
export type TableAnswer = Schemas['TableAnswer']

/** What /ws/notifications sends. */
export type Notification =
  | { type: 'conversation'; conversation: Conversation }
  | { type: 'file'; file: FileRecord }
  | { type: 'run'; run: Run }
  | { type: 'model'; model: Model }
