/** Types of the operator API, from its OpenAPI document. */

import type { components, paths } from "./generated/api";

export type Schemas = components["schemas"];

export type Approval = Schemas["Approval"];
export type Caller = Schemas["Caller"];
export type Clock = Schemas["Clock"];
export type Event = Schemas["Event"];
export type EventType = Schemas["EventType"];
export type Group = Schemas["Group"];
export type Hold = Schemas["Hold"];
export type Host = Schemas["ListedHost"];
export type HostStep = Schemas["HostStep"];
export type HostWithMachines = Schemas["HostWithMachines"];
export type Kind = Schemas["Kind"];
export type ListedEvent = Schemas["ListedEvent"];
export type Machine = Schemas["Machine"];
export type MachineState = Schemas["MachineState"];
export type EventDetail = Schemas["EventDetail"];
export type OrderDetail = Schemas["OrderDetail"];
export type Order = Schemas["Order"];
export type Overview = Answer<"/v1/overview", "get">;
export type Project = Schemas["Project"];
export type PromiseCount = Schemas["Promise"];
export type Record = Schemas["Record"];
export type Right = Schemas["Right"];
export type Rollout = Schemas["Rollout"];
export type RolloutBody = Schemas["RolloutBody"];
export type Stage = Schemas["Stage"];
export type Step = Schemas["Step"];
export type Summary = Answer<"/v1/summary", "get">["summary"];
export type Token = Schemas["Token"];
/** A topic of records. */
export type Topic = Schemas["Topic"];
export type Waiting = Schemas["Waiting"];
export type Wave = Schemas["Wave"];
export type Webhook = Schemas["Webhook"];

/** The content of an element; see `page/tree.js`. */
export type Child =
  string | number | boolean | null | undefined | import("./page/tree").Described | readonly Child[];

/** The paths that have a method, such as `/v1/machines/{name}`. */
export type PathWith<M extends "get" | "post" | "put" | "delete"> = {
  [P in keyof paths]: paths[P] extends { [K in M]: object } ? P : never;
}[keyof paths];

type Operation<P extends keyof paths, M extends keyof paths[P]> = paths[P][M];

type Json<R> = R extends { content: { "application/json": infer A } } ? A : never;

/** The successful answer of a call. */
export type Answer<P extends keyof paths, M extends keyof paths[P]> =
  Operation<P, M> extends { responses: infer R }
    ? { [S in keyof R]: S extends 200 | 201 | 202 ? Json<R[S]> : never }[keyof R]
    : never;

/** The arguments of a call: names in its path, its query and its body. */
export type Arguments<P extends keyof paths, M extends keyof paths[P]> =
  Operation<P, M> extends { parameters: { query?: infer Q; path?: infer N } }
    ? { path?: N; query?: Q; body?: Body<Operation<P, M>> }
    : never;

type Body<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : undefined;

/** A change of the live copy, fired as an event. */
export type CopyChange =
  | "machines"
  | "groups"
  | "hosts"
  | "projects"
  | "events"
  | "orders"
  | "rollouts"
  | "holds"
  | "summary"
  | "link"
  | "records";
