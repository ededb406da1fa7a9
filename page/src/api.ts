// What the page asks its server: the same operations that the command line has, with the same documents.
import { fetchJSON } from "./sdk";

export interface Note { mark: "ok" | "warning" | "problem" | "note"; text: string; hint: string; then: string | null }
export interface Row {
  id: string; ts: string; agent_identity: string; whose: string; state: string; content: string; kind: "memory" | "turn";
  session_id: string | null; origin: string; untrusted: boolean; hidden_by: number | null;
}
export interface Listed<T> { rows: T[]; next: string | null }
export interface ThemeRow {
  theme: string; memories: number; turns: number; new_today: number; new_this_week: number; hidden: number;
  last_write: string | null; last_recall: string | null; is_private: boolean;
}
export interface SessionRow { session_id: string; theme: string; turns: number; last: string; begins_with: string; delegations: number }
export interface EventRow {
  id: string; ts: string; agent_identity: string; action: string; target: string; by: string; session_id: string | null;
  content: string | null; old_text: string | null;
}
export interface HiddenRule {
  id: number; at: string; rule: string; actor: string; what: string; turns: number; memories: number; reason: string; content: string;
}
export interface Day { day: string; memories: number; turns: number }
export interface Activity { days: Day[]; untrusted: number; hidden: number }
export interface Status {
  error: string | null; held: string | null; home: string; notes: Note[]; embedding: string; database: string;
  stored: { memories: number; turns: number; theme_count: number; vectors_pending: number; dead_letters: number } | null;
  journal: { records?: number };
}
export interface Shown {
  kind: "memory" | "turn"; id: string; agent_identity: string; content: string; hidden_by: number | null; untrusted: boolean;
  origin: string; target?: string; role?: string; session_id?: string; ts?: string; created_at?: string; updated_at?: string;
  vector: { model: string | null; vectors: number; state: string }; homes?: Record<string, string>; history?: EventRow[];
}
export interface Said { id: string; ts: string; role: string; content: string; hidden_by: number | null; untrusted: boolean }
export interface Session {
  session_id: string; agent_identity: string; turns: Said[]; works_for: string[]; next: string | null;
  delegated_to: { child_session_id: string }[];
}
export interface Hit {
  id: string; whose: string; agent_identity: string; ts: string; score: number | null; content: string; kind: "memory" | "turn";
  session_id: string | null; origin: string; untrusted: boolean; rank?: number; words?: string[]; words_share?: number;
}
export interface Found { results: Hit[]; count: number; degraded: string | null; note: string | null }
export interface Reasons { results: Hit[]; searches: { kind: string; bar: number; model: { name: string } | null }[] }
export interface Added { notes: Note[] }
export interface Plan {
  executed: boolean; digest: string; counts: Record<string, number>; samples: { content?: string; sign?: string }[]; notes: Note[]; left: Note[];
  rule?: number | null; detail?: string;
}

const BASE = "/api/plugins/pgvector/";

/** What the server said instead of an answer. */
export class Refusal extends Error {
  constructor(readonly status: number, sentence: string, readonly document: Record<string, unknown> = {}) {
    super(sentence);
  }
}

export type Given = Record<string, string | number | null | undefined>;

export function read<T>(name: string, query: Given = {}): Promise<T> {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== null && value !== undefined && value !== "") given.set(key, String(value));
  return ask<T>(name, given);
}

export function change<T>(name: string, body: Record<string, unknown>): Promise<T> {
  return ask<T>(name, new URLSearchParams(), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

async function ask<T>(name: string, given: URLSearchParams, init?: RequestInit): Promise<T> {
  const profile = new URLSearchParams(location.search).get("profile");
  if (profile) given.set("profile", profile);
  try {
    return (await fetchJSON(`${BASE}${name}${given.size ? `?${given}` : ""}`, init)) as T;
  } catch (error) {
    throw refusal(error);
  }
}

/** The host throws `Error("<status>: <body>")`; whoever reads the page wants the sentence. */
function refusal(error: unknown): Refusal {
  const said = error instanceof Error ? error.message : String(error);
  const match = /^(\d{3}): ([\s\S]*)$/.exec(said);
  if (!match) return new Refusal(0, "The server does not answer. It may have been stopped; this page tries again by itself.");
  const status = Number(match[1]);
  try {
    const document = JSON.parse(match[2]!) as Record<string, unknown>;
    const { detail } = document;
    if (status === 404 && typeof detail === "string" && /No such API endpoint|Not Found/.test(detail)) {
      return new Refusal(status, "The dashboard has not loaded this plugin's API yet. Restart it: hermes dashboard");
    }
    if (typeof detail === "string") return new Refusal(status, detail, document);
  } catch {
    // Not ours: a proxy's page, or the host's own error.
  }
  return new Refusal(status, `The server answered with an error (${status}).`);
}
