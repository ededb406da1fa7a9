// What the host gives to a plugin's page. The shell in shell/ gives the same where there is no host.
import type * as ReactTypes from "react";

type Plain = ReactTypes.ComponentType<any>;

export interface Sdk {
  React: typeof ReactTypes;
  fetchJSON(path: string, init?: RequestInit): Promise<any>;
}

export interface Registry {
  register(name: string, component: Plain): void;
}

declare global {
  interface Window {
    __HERMES_PLUGIN_SDK__?: Sdk;
    __HERMES_PLUGINS__?: Registry;
  }
}

const sdk = window.__HERMES_PLUGIN_SDK__ as Sdk;
const react = (sdk?.React ?? { Component: Object }) as typeof ReactTypes;

export const fetchJSON = (path: string, init?: RequestInit) => sdk.fetchJSON(path, init);
export const h = react.createElement;
export const { Fragment, Component, memo, useCallback, useEffect, useMemo, useRef, useState } = react;

export type Node = ReactTypes.ReactNode;
export type Props<T = object> = T & { children?: Node };
export type FormEvent = ReactTypes.FormEvent;
