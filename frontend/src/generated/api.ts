/** Made by scripts/types.mjs from the API's schema. Do not edit. */
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        AttachedFile: {
            /** Format: uuid */
            id: string;
            name: string;
            page_count: number | null;
            state: string;
        };
        BranchRequest: {
            /**
             * Format: uuid
             * @description The last message of the branch to copy.
             */
            message_id: string;
        };
        /** CalledFunction */
        CalledFunction: {
            /** Arguments */
            arguments: string;
            /** Name */
            name: string;
        };
        Citation: {
            /** @description True when the answer did not cite and the passage was matched to it. */
            attributed?: boolean;
            /** @description x0, y0, x1, y1 as fractions of the page, origin at the top left. */
            boxes: number[][];
            /**
             * Format: uuid
             * @description Null once the file is deleted: its name and the passage are gone with it.
             */
            file_id: string | null;
            file_name: string;
            heading: string;
            /** @description Where a person finds the passage, where a page would not say it. */
            locator?: components["schemas"]["Locator"];
            /** @description The number by which the answer refers to it, as in [1]. */
            n: number;
            /** @description 0 where a table of a sheet is cited. */
            page: number;
            /** Format: uuid */
            passage_id: string;
            /**
             * @description * `digital` - digital
             *     * `ocr` - ocr
             * @enum {string}
             */
            source: "digital" | "ocr";
            /** @description The question to the table whose answer is cited. */
            sql?: string;
            /** @description The number of the file's table that is cited. */
            table?: number | null;
            text: string;
            /** @description Quotes, numbers, dates and names that sentences citing this passage, or matched to it, state and the passage does not contain; at most five. Empty when all were found. */
            unsupported?: string[];
        };
        CompleteRequest: {
            parts: components["schemas"]["SentPartRequest"][];
        };
        Conversation: {
            /** Format: uuid */
            active_run_id: string | null;
            archived: boolean;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            deleted_at: string | null;
            /** Format: uuid */
            head_message_id: string | null;
            /** Format: uuid */
            id: string;
            pinned: boolean;
            title: string;
            /** Format: date-time */
            updated_at: string;
        };
        ConversationPage: {
            next: string | null;
            results: components["schemas"]["Conversation"][];
        };
        CreateKeyRequest: {
            expires_in_days?: number | null;
            name: string;
            /** @description `full` (the default) acts as you everywhere; `inference` only asks models through /v1. */
            scopes?: ("full" | "inference")[];
        };
        Decision: {
            alternatives?: string[];
            model: string;
            reasons: components["schemas"]["Reason"][];
            /** @description Where it had to be answered; empty for anywhere. */
            region?: string;
            replica: string;
            /**
             * Format: double
             * @description How much a stronger model would gain; null where none was asked.
             */
            score?: number | null;
        };
        Error: {
            code: string;
            message: string;
            /** Format: double */
            retry_after_s: number | null;
        };
        Failover: {
            /** @description Characters of the answer that were there. */
            at: number;
            attempt: number;
            /** @description Where it is so: it has other weights. */
            other_weights?: boolean;
            /** @description The replica that went on. */
            replica: string;
        };
        File: {
            content_type: string;
            /** Format: date-time */
            created_at: string;
            error: components["schemas"]["FileError"] | null;
            /** Format: uuid */
            id: string;
            /**
             * @description * `pdf` - pdf
             *     * `docx` - docx
             *     * `pptx` - pptx
             *     * `sheet` - sheet
             *     * `csv` - csv
             *     * `html` - html
             *     * `eml` - eml
             *     * `msg` - msg
             *     * `doc` - doc
             *     * `ppt` - ppt
             *     * `rtf` - rtf
             *     * `epub` - epub
             *     * `odt` - odt
             *     * `odp` - odp
             *     * `zip` - zip
             *     * `image` - image
             *     * `text` - text
             *     * `markdown` - markdown
             *     * `code` - code
             * @enum {string}
             */
            kind: "pdf" | "docx" | "pptx" | "sheet" | "csv" | "html" | "eml" | "msg" | "doc" | "ppt" | "rtf" | "epub" | "odt" | "odp" | "zip" | "image" | "text" | "markdown" | "code";
            name: string;
            /** @description What was left out of a file that could be read. */
            notices: components["schemas"]["FileError"][];
            page_count: number | null;
            pages_failed: number[];
            pages_ready: number;
            /**
             * @description Who looked for malware; null until that was done.
             *
             *     * `clamd` - clamd
             *     * `signatures` - signatures
             * @enum {string|null}
             */
            scanner: "clamd" | "signatures" | null;
            /**
             * @description * `none` - none
             *     * `keyword` - keyword
             *     * `hybrid` - hybrid
             * @enum {string}
             */
            searchable: "none" | "keyword" | "hybrid";
            /** @description How long reading will take still; null while that is not known, and when it is done. */
            seconds_left: number | null;
            size: number;
            /**
             * @description * `upload` - upload
             *     * `verify` - verify
             *     * `parse` - parse
             *     * `ocr` - ocr
             *     * `index` - index
             *     * `embed` - embed
             *     * `summary` - summary
             * @enum {string|null}
             */
            stage: "upload" | "verify" | "parse" | "ocr" | "index" | "embed" | "summary" | null;
            /**
             * @description * `uploading` - uploading
             *     * `processing` - processing
             *     * `ready` - ready
             *     * `partial` - partial
             *     * `needs_password` - needs_password
             *     * `failed` - failed
             *     * `deleted` - deleted
             * @enum {string}
             */
            state: "uploading" | "processing" | "ready" | "partial" | "needs_password" | "failed" | "deleted";
        };
        FileError: {
            code: string;
            message: string;
        };
        FilePage: {
            next: string | null;
            results: components["schemas"]["File"][];
        };
        FileUsage: {
            mine: components["schemas"]["KeptFiles"];
            organization: components["schemas"]["KeptFiles"];
        };
        History: {
            left_out: number;
            /** @description Older ones that the question needed. */
            recalled: components["schemas"]["RecalledTurn"][];
            /** @description Of them word for word, the newest. */
            sent: number;
            /** @description Of the oldest, where one is kept. */
            summary: components["schemas"]["Memo"] | null;
            /** @description Turns before the question. */
            total: number;
        };
        KeptFiles: {
            bytes: number;
            bytes_at_most: number | null;
            files: number;
            files_at_most: number | null;
        };
        Key: {
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string | null;
            /** Format: uuid */
            id: string;
            /** Format: date-time */
            last_used_at: string | null;
            name: string;
            /** @description The first characters of the key, to tell keys apart. */
            prefix: string;
            scopes: ("full" | "inference")[];
        };
        KeyList: {
            next: string | null;
            results: components["schemas"]["Key"][];
        };
        LeftOut: {
            /** Format: uuid */
            file_id: string;
            file_name: string;
            /** @description What was not read of it. */
            sentences: string[];
        };
        Locator: {
            /** @description The file inside the file, as an attachment; of a mail's own text `body`. */
            part?: string;
            /** @description The first and the last, by the numbers that spreadsheet programs show. */
            rows?: number[];
            sheet?: string;
            slide?: number;
        };
        LookedUp: {
            lookups: components["schemas"]["Lookup"][];
            /** @description With the time that the model took to ask. */
            ms: number;
            /** @description Why it ended early; empty where it did not. */
            problem: string;
        };
        Lookup: {
            /** @description What was wrong with the SQL; empty where it was answered. */
            error: string;
            /** Format: uuid */
            file_id: string;
            file_name: string;
            ms: number;
            rows: number;
            sql: string;
        };
        Me: {
            organization: components["schemas"]["Organization"];
            user: components["schemas"]["User"];
        };
        Memo: {
            model: string;
            text: string;
            /** @description It is of this many, from the first. */
            turns: number;
        };
        Message: {
            citations: components["schemas"]["Citation"][];
            /** Format: uuid */
            conversation_id: string;
            /** Format: date-time */
            created_at: string;
            error: components["schemas"]["Error"] | null;
            files: components["schemas"]["AttachedFile"][];
            /** Format: date-time */
            finished_at: string | null;
            /** Format: uuid */
            id: string;
            model: string;
            notices: components["schemas"]["Notice"][];
            /** Format: uuid */
            parent_id: string | null;
            /**
             * @description * `user` - user
             *     * `assistant` - assistant
             * @enum {string}
             */
            role: "user" | "assistant";
            /** Format: uuid */
            run_id: string | null;
            seq: number;
            /**
             * @description * `queued` - queued
             *     * `running` - running
             *     * `waiting_approval` - waiting_approval
             *     * `completed` - completed
             *     * `incomplete` - incomplete
             *     * `cancelled` - cancelled
             *     * `failed` - failed
             * @enum {string}
             */
            status: "queued" | "running" | "waiting_approval" | "completed" | "incomplete" | "cancelled" | "failed";
            text: string;
            /** @description What a caller of /v1 was asked to do. */
            tool_calls: components["schemas"]["ToolCall"][];
        };
        MessagePage: {
            next: string | null;
            results: components["schemas"]["Message"][];
        };
        Model: {
            context_length: number;
            demo: boolean;
            /** @description Seconds until a loading model is ready, if known. */
            eta_s: number | null;
            id: string;
            name: string;
            note: string;
            phase: string;
            replicas: components["schemas"]["ModelReplicas"];
            /**
             * @description * `ready` - ready
             *     * `loading` - loading
             *     * `unavailable` - unavailable
             * @enum {string}
             */
            state: "ready" | "loading" | "unavailable";
        };
        ModelList: {
            default: string;
            results: components["schemas"]["Model"][];
        };
        ModelReplicas: {
            ready: number;
            total: number;
        };
        NewConversationRequest: {
            /** @default  */
            title: string;
        };
        NewFileRequest: {
            /** @default  */
            content_type: string;
            name: string;
            /** Format: int64 */
            size: number;
        };
        NewKey: {
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string | null;
            /** Format: uuid */
            id: string;
            /** @description The whole key. It is shown this once. */
            key: string;
            /** Format: date-time */
            last_used_at: string | null;
            name: string;
            /** @description The first characters of the key, to tell keys apart. */
            prefix: string;
            scopes: ("full" | "inference")[];
        };
        NewMessageRequest: {
            /**
             * Format: uuid
             * @description Chosen by the client; a retry with the same one changes nothing.
             */
            client_id: string;
            file_ids?: string[];
            /** @default auto */
            model: string;
            /**
             * Format: uuid
             * @description The answer that this follows.
             */
            parent_id?: string | null;
            text: string;
        };
        Notice: {
            /** @description Of `reconstructed`: code points written before. */
            at?: number;
            /** @description Of `reconstructed`. */
            attempt?: number;
            /** @description Of `unready`. */
            files?: components["schemas"]["UnreadyFile"][];
            /** @description Of `escalated`: the model that did not manage. */
            from_model?: string;
            /**
             * @description Another replica went on with the answer; files were searched without vectors, because there are none yet, what makes them is away, or it is for some of them; pages could not be searched, files were not read whole, the question was about whole files, or a stronger model answered instead.
             *
             *     * `reconstructed` - reconstructed
             *     * `keyword_only` - keyword_only
             *     * `keyword_away` - keyword_away
             *     * `keyword_partly` - keyword_partly
             *     * `unready` - unready
             *     * `left_out` - left_out
             *     * `survey` - survey
             *     * `escalated` - escalated
             * @enum {string}
             */
            kind: "reconstructed" | "keyword_only" | "keyword_away" | "keyword_partly" | "unready" | "left_out" | "survey" | "escalated";
            /** @description Of `left_out`. */
            left_out?: components["schemas"]["LeftOut"][];
            /** @description Of `reconstructed`, where it is so: the replica that went on has other weights. */
            other_weights?: boolean;
            /** @description Of `reconstructed`. */
            replica?: string | null;
            /** @description Of `survey`: what of whole files the model was given. */
            survey?: components["schemas"]["Survey"];
            /** @description Of `escalated`: the model that answered. */
            to_model?: string;
            /** @description Of `escalated`: what was wrong with the first answer. */
            why?: string;
        };
        Organization: {
            /** Format: uuid */
            id: string;
            name: string;
            /**
             * @description * `owner` - owner
             *     * `admin` - admin
             *     * `member` - member
             * @enum {string}
             */
            role: "owner" | "admin" | "member";
            /**
             * @description * `free` - free
             *     * `plus` - plus
             *     * `enterprise` - enterprise
             * @enum {string}
             */
            tier: "free" | "plus" | "enterprise";
        };
        Page: {
            error: components["schemas"]["FileError"] | null;
            /** Format: double */
            height: number | null;
            number: number;
            /**
             * @description * `digital` - digital
             *     * `ocr` - ocr
             * @enum {string|null}
             */
            source: "digital" | "ocr" | null;
            /**
             * @description * `pending` - pending
             *     * `ready` - ready
             *     * `ocr` - ocr
             *     * `failed` - failed
             * @enum {string}
             */
            state: "pending" | "ready" | "ocr" | "failed";
            /** Format: double */
            width: number | null;
        };
        PageList: {
            results: components["schemas"]["Page"][];
        };
        PageText: {
            error: components["schemas"]["FileError"] | null;
            /** Format: double */
            height: number | null;
            /** @description That of most of its text (ISO 639-1), if it can be told. */
            language: string | null;
            number: number;
            /** @description Of a sheet: for each line of the text the number of its row; null where it is none. */
            row_numbers: (number | null)[] | null;
            /**
             * @description * `digital` - digital
             *     * `ocr` - ocr
             * @enum {string|null}
             */
            source: "digital" | "ocr" | null;
            /**
             * @description * `pending` - pending
             *     * `ready` - ready
             *     * `ocr` - ocr
             *     * `failed` - failed
             * @enum {string}
             */
            state: "pending" | "ready" | "ocr" | "failed";
            text: string;
            /** Format: double */
            width: number | null;
        };
        PartTarget: {
            number: number;
            size: number;
            /** @description PUT exactly `size` bytes here; keep the ETag of the answer. */
            url: string;
        };
        PasswordRequest: {
            password: string;
        };
        PatchedConversationChangeRequest: {
            archived?: boolean;
            /** Format: uuid */
            head_message_id?: string;
            pinned?: boolean;
            title?: string;
        };
        PatchedRenameRequest: {
            name?: string;
        };
        Posted: {
            answer: components["schemas"]["Message"];
            question: components["schemas"]["Message"];
            run: components["schemas"]["Run"];
        };
        /** @description An error (RFC 9457). Decide by `code`; show `detail` to people; quote `request_id` to support. */
        Problem: {
            code: string;
            detail: string;
            /** @description With `invalid`: each field's messages. */
            fields?: {
                [key: string]: unknown;
            };
            request_id: string;
            /** @description With 429 and 503: seconds to wait. */
            retry_after_s?: number;
            status: number;
            title: string;
            type: string;
        } & {
            [key: string]: unknown;
        };
        Reason: {
            facts: {
                [key: string]: unknown;
            };
            /** @description user, policy, rule, complexity, load, escalation, placement, affinity or failover */
            step: string;
            text: string;
        };
        RecalledTurn: {
            /** Format: uuid */
            message_id: string;
            /** @description In its branch, from 1. */
            number: number;
            /**
             * @description * `user` - user
             *     * `assistant` - assistant
             * @enum {string}
             */
            role: "user" | "assistant";
        };
        Receipt: {
            bytes: number;
            /** Format: date-time */
            deleted_at: string;
            /** Format: uuid */
            id: string;
            /**
             * Format: date-time
             * @description When nothing was left.
             */
            purged_at: string;
            /** @description How much was removed, by store. */
            removed: {
                [key: string]: number;
            };
            /** @description By the key of this installation. */
            signature: string;
        };
        ReceivedPart: {
            etag: string;
            number: number;
            size: number;
        };
        Regenerated: {
            answer: components["schemas"]["Message"];
            run: components["schemas"]["Run"];
        };
        RegenerateRequest: {
            /** Format: uuid */
            client_id: string;
            /** @default auto */
            model: string;
        };
        Run: {
            /** Format: uuid */
            answer_id: string;
            attempt: number;
            cached_tokens: number;
            completion_tokens: number;
            /** Format: uuid */
            conversation_id: string;
            /** Format: date-time */
            created_at: string;
            error: components["schemas"]["Error"] | null;
            /** Format: double */
            estimated_wait_s: number | null;
            /** Format: date-time */
            finished_at: string | null;
            /** Format: uuid */
            id: string;
            model: string;
            model_requested: string;
            prompt_tokens: number;
            /** Format: uuid */
            question_id: string | null;
            /** @description 1 is next. Only of a waiting run that is read by its id; null elsewhere. */
            queue_position: number | null;
            replica: string;
            /** Format: date-time */
            started_at: string | null;
            /**
             * @description * `queued` - queued
             *     * `running` - running
             *     * `waiting_approval` - waiting_approval
             *     * `completed` - completed
             *     * `incomplete` - incomplete
             *     * `cancelled` - cancelled
             *     * `failed` - failed
             * @enum {string}
             */
            state: "queued" | "running" | "waiting_approval" | "completed" | "incomplete" | "cancelled" | "failed";
            /** @description Time to first token, from the claim, in ms. */
            ttft_ms: number | null;
        };
        RunContext: {
            /** @description What it had of the conversation. */
            history: components["schemas"]["History"] | null;
            left_out: components["schemas"]["LeftOut"][];
            messages: {
                [key: string]: unknown;
            }[];
            mode: string | null;
            passages: {
                [key: string]: unknown;
            }[];
            /** @description For questions about whole files. */
            survey: components["schemas"]["Survey"] | null;
            /** @description What its model looked up in tables of files before. */
            tables: components["schemas"]["LookedUp"] | null;
            unready: {
                [key: string]: unknown;
            }[];
        };
        RunDetail: {
            /** Format: uuid */
            answer_id: string;
            attempt: number;
            cached_tokens: number;
            completion_tokens: number;
            /** Format: uuid */
            conversation_id: string;
            /** Format: date-time */
            created_at: string;
            decision: components["schemas"]["Decision"] | null;
            error: components["schemas"]["Error"] | null;
            /** Format: double */
            estimated_wait_s: number | null;
            /** Format: date-time */
            finished_at: string | null;
            /** Format: uuid */
            id: string;
            lane: string;
            model: string;
            model_requested: string;
            prompt_tokens: number;
            /** Format: uuid */
            question_id: string | null;
            /** @description 1 is next. Only of a waiting run that is read by its id; null elsewhere. */
            queue_position: number | null;
            reconstructed: components["schemas"]["Failover"][];
            replica: string;
            /** Format: date-time */
            started_at: string | null;
            /**
             * @description * `queued` - queued
             *     * `running` - running
             *     * `waiting_approval` - waiting_approval
             *     * `completed` - completed
             *     * `incomplete` - incomplete
             *     * `cancelled` - cancelled
             *     * `failed` - failed
             * @enum {string}
             */
            state: "queued" | "running" | "waiting_approval" | "completed" | "incomplete" | "cancelled" | "failed";
            tier: string;
            transitions: components["schemas"]["Transition"][];
            /** @description Time to first token, from the claim, in ms. */
            ttft_ms: number | null;
            /** @description Until a replica had a place, from the claim, in ms. */
            waited_ms: number | null;
        };
        SentPartRequest: {
            etag: string;
            number: number;
        };
        Site: {
            /** @description Whether forgotten passwords can be reset by mail. */
            mail: boolean;
            name: string;
            /** @description True when this address is not safe to sign in at. */
            needs_https: boolean;
            /** @description True until the first account, the operator's, is made. */
            setup_needed: boolean;
            /**
             * @description Who may make an account without help.
             *
             *     * `first` - first
             *     * `open` - open
             * @enum {string}
             */
            signup: "first" | "open";
            version: string;
        };
        StartedUpload: {
            file: components["schemas"]["File"];
            upload: components["schemas"]["Upload"];
        };
        Summary: {
            error: components["schemas"]["FileError"] | null;
            model: string | null;
            /** @description The file was read further after the summary was made. */
            outdated: boolean;
            page_count: number;
            pages_covered: number;
            sections: components["schemas"]["SummarySection"][];
            sentences: components["schemas"]["SummarySentence"][];
            /**
             * @description * `none` - none
             *     * `working` - working
             *     * `ready` - ready
             *     * `failed` - failed
             * @enum {string}
             */
            state: "none" | "working" | "ready" | "failed";
            /** @description Requests to the model, as far as they are known. */
            steps: number;
            steps_done: number;
            /** @description No model has time for it at this moment. */
            waiting: boolean;
        };
        SummarySection: {
            first_page: number;
            last_page: number;
            /** @description Pages whose text the model was given. */
            pages_given: number;
            /** @description Null until it is made. */
            text: string | null;
            title: string;
        };
        SummarySentence: {
            /** @description The pages were found by the sentence's words; it named none. */
            matched: boolean;
            pages: number[];
            text: string;
        };
        Survey: {
            files: components["schemas"]["SurveyedFile"][];
            /**
             * @description Passages evenly through the files, summaries of their sections too, or a search of every page.
             *
             *     * `spread` - spread
             *     * `summary` - summary
             *     * `words` - words
             * @enum {string}
             */
            way: "spread" | "summary" | "words";
            words: string[];
        };
        SurveyedFile: {
            /** Format: uuid */
            file_id: string;
            file_name: string;
            /** @description Of `words`: which have the words. */
            found: number[];
            page_count: number;
            /** @description Whose text the model was given. */
            pages: number[];
            /** @description Which its summaries are of. */
            summarised: number[];
        };
        Table: {
            columns: components["schemas"]["TableColumn"][];
            first_column: number;
            /** @description Of its data, in the sheet, from 1. */
            first_row: number;
            header_row: number | null;
            last_column: number;
            last_row: number;
            /** @description What SQL calls the table. */
            name: string;
            notes: string[];
            number: number;
            page: number | null;
            rows: number;
            sheet: string;
            title: string;
        };
        TableAnswer: {
            columns: components["schemas"]["TableAnswerColumn"][];
            /** @description Each row's number in the sheet, where the rows are rows of the first source. */
            row_numbers: number[] | null;
            rows: (string | number | boolean | null)[][];
            sources: components["schemas"]["TableAnswerSource"][];
            /** @description What was run. */
            sql: string;
            /** @description There are more rows, or longer cells. */
            truncated: boolean;
        };
        TableAnswerColumn: {
            name: string;
            type: string;
        };
        TableAnswerSource: {
            /** Format: uuid */
            file_id: string;
            file_name: string;
            name: string;
            number: number;
            place: string;
        };
        TableColumn: {
            /** @description How many different values, about. */
            distinct: number;
            empty: number;
            /** @description What the header says. */
            label: string;
            least: string;
            most: string;
            /** @description What SQL calls the column. */
            name: string;
            /** @description The text column with each cell as written, where some are of another type. */
            raw: string;
            samples: string[];
            /**
             * @description * `integer` - integer
             *     * `decimal` - decimal
             *     * `boolean` - boolean
             *     * `date` - date
             *     * `timestamp` - timestamp
             *     * `time` - time
             *     * `text` - text
             * @enum {string}
             */
            type: "integer" | "decimal" | "boolean" | "date" | "timestamp" | "time" | "text";
            /** @description A sign that was written with each number, such as $ or %. */
            unit: string;
            /** @description Cells that are of another type and empty in this column. */
            unread: number;
        };
        TableList: {
            results: components["schemas"]["Table"][];
        };
        TableQuestionRequest: {
            /** @description One SELECT over the file's tables, in DuckDB's dialect. */
            sql: string;
        };
        ToolCall: {
            function: components["schemas"]["CalledFunction"];
            id: string;
            /**
             * @description * `function` - function
             * @enum {string}
             */
            type: "function";
        };
        Transition: {
            /** Format: date-time */
            at: string;
            attempt: number;
            by: string;
            /**
             * @description * `queued` - queued
             *     * `running` - running
             *     * `waiting_approval` - waiting_approval
             *     * `completed` - completed
             *     * `incomplete` - incomplete
             *     * `cancelled` - cancelled
             *     * `failed` - failed
             * @enum {string}
             */
            state: "queued" | "running" | "waiting_approval" | "completed" | "incomplete" | "cancelled" | "failed";
        };
        UnreadyFile: {
            /** Format: uuid */
            file_id: string;
            file_name: string;
            pages_failed: number[];
            pages_pending: number[];
            /** @description Of `failed`, where no page could be read. */
            reason?: string;
            /**
             * @description Why what is named could not be searched; all of the file where no pages are named.
             *
             *     * `reading` - reading
             *     * `needs_password` - needs_password
             *     * `failed` - failed
             * @enum {string}
             */
            state?: "reading" | "needs_password" | "failed";
        };
        Upload: {
            /**
             * Format: date-time
             * @description When the addresses expire; ask again for new ones.
             */
            expires_at: string;
            part_size: number;
            parts: components["schemas"]["PartTarget"][];
            received: components["schemas"]["ReceivedPart"][];
        };
        User: {
            /** Format: email */
            email: string;
            /** Format: uuid */
            id: string;
            is_operator: boolean;
            name: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
