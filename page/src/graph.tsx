// Which session worked for which: parents on the left, those who worked for them to their right.
import type { Edge } from "./api";
import { to } from "./place";
import { plainly } from "./parts";
import { when } from "./words";
import { h } from "./sdk";

const COLUMN = 250;
const LINE = 44;
const BOX = { width: 200, height: 30 };
const MOST = 60;

interface Spot { session: string; depth: number; line: number; at: string | null }

export function layOut(edges: Edge[]): { spots: Map<string, Spot>; drawn: Edge[]; lines: number; depth: number } {
  const children = new Map<string, Edge[]>();
  const isChild = new Set<string>();
  for (const edge of [...edges].reverse()) {
    const known = children.get(edge.session_id) ?? [];
    if (!known.some((each) => each.child_session_id === edge.child_session_id)) children.set(edge.session_id, [...known, edge]);
    if (edge.child_session_id !== edge.session_id) isChild.add(edge.child_session_id);
  }
  const spots = new Map<string, Spot>();
  const drawn: Edge[] = [];
  let line = 0;
  let deepest = 0;
  const place = (session: string, depth: number, at: string | null) => {
    if (spots.has(session) || spots.size >= MOST) return;
    const spot = { session, depth, line, at };
    spots.set(session, spot);
    deepest = Math.max(deepest, depth);
    const own = children.get(session) ?? [];
    let first = true;
    for (const edge of own) {
      if (spots.has(edge.child_session_id) || spots.size >= MOST) continue;
      if (!first) line++;
      first = false;
      drawn.push(edge);
      place(edge.child_session_id, depth + 1, edge.at);
    }
  };
  // The newest come first; a circle of delegations has no first, so whoever is left begins one.
  for (const edge of edges) {
    if (!isChild.has(edge.session_id) && !spots.has(edge.session_id)) {
      place(edge.session_id, 0, null);
      line++;
    }
  }
  for (const edge of edges) {
    if (!spots.has(edge.session_id)) {
      place(edge.session_id, 0, null);
      line++;
    }
  }
  return { spots, drawn, lines: Math.max(1, line), depth: deepest };
}

const short = (session: string) => {
  const shown = plainly(session);
  return shown.length > 24 ? `${shown.slice(0, 23)}…` : shown;
};

export function Graph({ edges, theme }: { edges: Edge[]; theme: string }) {
  const { spots, drawn, lines, depth } = layOut(edges);
  const width = depth * COLUMN + BOX.width + 2;
  const height = lines * LINE;
  return (
    <div className="pgv-scroll" tabIndex={0} role="region" aria-label="Delegations, as a graph">
      <svg className="pgv-graph" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="group" aria-label="Sessions and those that worked for them">
        {drawn.map((edge) => {
          const from = spots.get(edge.session_id)!;
          const child = spots.get(edge.child_session_id);
          if (!child) return null;
          const x = from.depth * COLUMN + BOX.width;
          const y = from.line * LINE + BOX.height / 2 + 2;
          const x2 = child.depth * COLUMN;
          const y2 = child.line * LINE + BOX.height / 2 + 2;
          return (
            <g key={`${edge.session_id} ${edge.child_session_id}`} aria-hidden="true">
              <path d={`M${x},${y} C${x + 28},${y} ${x2 - 28},${y2} ${x2 - 5},${y2}`} className="pgv-edge" />
              <path d={`M${x2 - 8},${y2 - 4} L${x2 - 1},${y2} L${x2 - 8},${y2 + 4} Z`} className="pgv-fill" />
            </g>
          );
        })}
        {[...spots.values()].map((spot) => (
          <a key={spot.session} href={to({ view: "theme", theme, tab: "sessions", session: spot.session })} aria-label={`Session ${plainly(spot.session)}${spot.at ? `, worked for another since ${when(spot.at)}` : ", the first of its line"}`}>
            <title>{plainly(spot.session)}</title>
            <rect x={spot.depth * COLUMN + 1} y={spot.line * LINE + 2} width={BOX.width - 2} height={BOX.height} rx="6" className="pgv-node" />
            <text x={spot.depth * COLUMN + 12} y={spot.line * LINE + BOX.height / 2 + 6} className="pgv-node-text">{short(spot.session)}</text>
          </a>
        ))}
      </svg>
    </div>
  );
}
