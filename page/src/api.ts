// What the page asks its server, and what it gets.
import { fetchJSON } from "./sdk";

export type Level = "ok" | "warning" | "problem";
export interface Check { name: string; level: Level; text: string; hint: string; command: string }
export interface Health { level: Level; set_up: boolean; checks: Check[]; checked_at: string; summary?: string }
export interface Theme {
  theme: string; memories: number; turns: number; new_today: number; new_this_week: number;
  last_write: string | null; last_recall: string | null; is_private: boolean; growth: number[]; homes: string[];
}
export interface Fleet { themes: Theme[]; first: number; count: number; all: number; memories: number; turns: number }
export interface Day {
  day: string; memories: number; turns: number; recalls: number; degraded: number; p50_ms: number | null; p95_ms: number | null;
}
export interface Row {
  name: string; kind: "memory" | "turn"; theme: string; at: string; target: string | null; session_id: string | null;
  role: string | null; hidden_by: number | null; origin: string; trust: string | null; content: string; left_out: number;
}
export interface Rows { rows: Row[]; next: string | null }
export interface HistoryEvent {
  event: string; at: string; theme: string; target: string; action: string; by: string; home_id: string;
  session_id: string | null; content: string; before: string;
}
export interface Shown {
  name: string; kind: "memory" | "turn"; model: string | null; vectors: number; history: HistoryEvent[];
  row: {
    theme: string; origin?: string; trust?: string | null; content: string; left_out: number; hidden_by: number | null; homes?: Record<string, string>;
    created_at?: string; updated_at?: string; at?: string; session_id?: string; role?: string; target?: string;
  };
}
export interface SessionRow {
  theme: string; session_id: string; turns: number; first: string; last: string; parent_session_id: string | null;
  begins_with: string; delegations: number;
}
export interface Said { name: string; at: string; role: string; content: string; left_out: number; hidden_by: number | null }
export interface Edge { session_id: string; child_session_id: string; at: string }
export interface Transcript {
  theme: string; session_id: string; turns: Said[]; children: Edge[]; parents: Edge[]; next: string | null; begins_later: boolean;
}
export interface Hit {
  name: string; kind: "memory" | "turn"; theme: string; at: string; target: string | null; session_id: string | null;
  role: string | null; origin: string; trust: string | null; count: number; parts: [string, boolean][]; rank: number;
  similarity: number | null; meaning: number | null; words: string[]; words_share: number;
}
export interface Group {
  kind: "memory" | "turn"; hits: Hit[]; model: string | null; bar: number; bar_by_meaning: number;
  asks_when: boolean; speaker: string | null;
  period: { start: string; end: string } | null; milliseconds: Record<string, number>;
}
export interface Term { word: string; weight: number; is_absent: boolean }
export interface WhyFound { hit: Hit; group: Group; terms: Term[] }
export interface Found { groups: Group[]; degraded: string | null; terms: Term[] }
export interface Blocked { file: string; content: string; homes: string[]; instead: string | null }
export interface Plan {
  executed: boolean; digest?: string; remove?: string[]; restore?: string[]; blocked?: Blocked[]; event?: string;
  rows?: string[]; counts?: Record<string, number>; is_empty?: boolean; receipt?: number; unreached?: string[];
  rule?: number | null; samples?: { content: string }[]; files?: string[]; host_messages?: number;
}

const BASE = "/api/plugins/pgvector/";

/** What the server said instead of an answer. */
export class Refusal extends Error {
  constructor(readonly status: number, sentence: string) {
    super(sentence);
  }
}

export type Query = Record<string, string | number | null | undefined>;

export function read<T>(name: string, query: Query = {}): Promise<T> {
  return ask<T>(name, query);
}

export function change<T>(name: string, body: Record<string, unknown>): Promise<T> {
  return ask<T>(name, {}, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function ask<T>(name: string, query: Query, init?: RequestInit): Promise<T> {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== null && value !== undefined && value !== "") given.set(key, String(value));
  const profile = new URLSearchParams(location.search).get("profile");
  if (profile) given.set("profile", profile);
  const asked = given.toString();
  try {
    return (await fetchJSON(BASE + name + (asked ? `?${asked}` : ""), init)) as T;
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
    const detail = (JSON.parse(match[2]!) as { detail?: unknown }).detail;
    if (status === 404 && typeof detail === "string" && /No such API endpoint|Not Found/.test(detail)) {
      return new Refusal(status, "The dashboard has not loaded this plugin's API yet. Restart it: hermes dashboard");
    }
    if (typeof detail === "string") return new Refusal(status, detail);
  } catch {
    // Not ours: a proxy's page, or the host's own error.
  }
  return new Refusal(status, `The server answered with an error (${status}).`);
}
