// Data that is read once, or again and again while somebody looks: what is shown stays until the next answer is there.
import { Refusal, read, type Given } from "./api";
import { useCallback, useEffect, useRef, useState } from "./sdk";

export interface Loaded<T> {
  data: T | null;
  error: Refusal | null;
  /** Whether it is read again without anybody asking. */
  repeats: boolean;
  reload(): void;
}

interface State<T> {
  key: string;
  data: T | null;
  error: Refusal | null;
}

/** `limit` says how much of it: what is there already stays while more is read. */
export function useLoad<T>(name: string, query: Given = {}, options: { every?: number; when?: boolean; version?: number; limit?: number } = {}): Loaded<T> {
  const { every = 0, when = true, version = 0, limit } = options;
  const key = `${name} ${JSON.stringify(query)} ${location.search}`;
  const [state, setState] = useState<State<T>>({ key: "", data: null, error: null });
  const asked = useRef(0);
  const ask = useCallback(() => {
    if (!when) return Promise.resolve();
    const number = ++asked.current;
    return read<T>(name, { ...query, limit: limit ?? query.limit }).then(
      (data) => {
        if (number === asked.current) setState({ key, data, error: null });
      },
      (error: Refusal) => {
        if (number === asked.current) setState((before) => ({ key, data: before.key === key ? before.data : null, error }));
      },
    );
  }, [key, when, limit]);
  useEffect(() => {
    let timer = 0;
    let stopped = false;
    const round = () => {
      // The host sets ?profile= after the first render; what is not looked at is not asked for.
      const done = document.hidden && every ? Promise.resolve() : ask();
      void done.then(() => {
        if (every && !stopped) timer = window.setTimeout(round, every);
      });
    };
    timer = window.setTimeout(round, 0);
    return () => {
      stopped = true;
      asked.current++;
      clearTimeout(timer);
    };
  }, [ask, every, version]);
  const current = state.key === key;
  return {
    data: current ? state.data : null,
    error: current ? state.error : null,
    repeats: every > 0,
    reload: () => void ask(),
  };
}
