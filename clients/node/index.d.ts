/** What was decided: only after ALLOW may the whole action go on. */
export type Decision = "ALLOW" | "DENY" | "ESCALATE" | "DEGRADE";
export type Risk = "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";
export type Outcome = "SUCCESS" | "FAILURE" | "ESCALATED" | "UNKNOWN";

/** A tool call as an input. */
export interface ToolInput {
  tool: string;
  arguments: unknown;
  server?: string;
  /** The caller's own id of the call. */
  callId?: string;
}

/** What an agent wants to do, as policies see it. */
export interface Intent {
  id?: string;
  agentId: string;
  parsedAction: string;
  riskLevel: Risk;
  requiredCapabilities: string[];
  context?: Record<string, unknown>;
  timestamp?: string;
}

export interface Parse {
  intent: Intent;
  confidence: number;
  alternatives: { parsedAction: string; confidence: number }[];
}

export interface Verdict extends Partial<Parse> {
  decision: Decision;
  reasoning: string;
  grantedCapabilities: string[];
  deniedCapabilities: string[];
  constraints: Record<string, unknown>;
  proofId: string;
  trustSnapshot: { score: number; tier: string; tierName: string };
  /** On a DENY: what refused it. */
  denialClass?: string;
  /** On a DENY: whether the same request may be allowed later though nobody changes a policy. */
  retryable?: boolean;
}

export interface ProofRecord {
  id: string;
  entityId: string;
  intentId: string;
  decision: Decision;
  reasoning: string;
  trustScore: number;
  trustTier: string;
  riskLevel: Risk;
  outcome?: Outcome;
  timestamp: string;
  hash: string;
  previousHash: string;
}

export interface Page {
  items: ProofRecord[];
  total: number;
  page: number;
  pageSize: number;
  hasMore: boolean;
}

export interface Statistics {
  entityId: string;
  totalRecords: number;
  successRate: number;
  averageTrustScore: number;
  chainIntegrity: boolean;
  decisionBreakdown: Record<Decision, number>;
  riskBreakdown: Record<Risk, number>;
  period: { from: string; to: string };
}

export interface ConnectOptions {
  /** The daemon's socket; `operator.sock` in `home` without it. */
  socket?: string;
  /** The daemon's folder; `$RULEKEEP_HOME` or `~/.rulekeep` without it. */
  home?: string;
  /** An API key. Without one the daemon permits calls that read, and no others. */
  key?: string;
  /** Milliseconds after which a call without an answer fails; 30,000 without it. */
  timeout?: number;
}

/** A request for a decision: on an intent, or on what an agent asks. A `taskId` that is there must have a value. */
export type EnforceRequest =
  | { intent: Intent; taskId?: string }
  | { agentId: string; input: string | ToolInput; context?: Record<string, unknown>; taskId?: string };

export interface CallOptions {
  agentId: string;
  server?: string;
  context?: Record<string, unknown>;
  /** The task that the call is for: it must be inside the mandate too. */
  taskId?: string;
  /** Milliseconds to wait for a reviewer after ESCALATE; 0 without it. */
  wait?: number;
}

export interface ToolCall extends CallOptions {
  tool: string;
  arguments: unknown;
  callId?: string;
}

export interface GuardOptions extends CallOptions {
  /** The tool's name; that of the function without it. */
  tool?: string;
  /** The names of the function's parameters. Without them it takes one object of arguments. */
  parameters?: string[];
}

export interface AgentCommand extends Omit<CallOptions, "server"> {
  /** The program and its arguments. */
  command: string[];
  /** The folder in which it starts, by its absolute path. */
  folder: string;
}

/** A call that failed. */
export class RulekeepError extends Error {
  /** The code of the contract, `DISCONNECTED` where the connection was lost, or `TIMEOUT`. */
  readonly code: string;
  readonly details: Record<string, unknown>;
  readonly httpStatus: number;
}

/** A tool call that was not allowed, and did not run. */
export class Denied extends Error {
  /** The whole decision. Without `proofId` the request could not be decided at all. */
  readonly verdict: Pick<Verdict, "decision" | "reasoning"> & Partial<Verdict>;
  readonly decision: Decision;
  readonly proofId: string | undefined;
}

/** Connects to the daemon. A connection that is lost is made again by the next call. */
export function connect(options?: ConnectOptions): Promise<Governor>;

/** The governor that the daemon has. */
export class Governor {
  private constructor();
  /** Makes any call of the sidecar's protocol by its name. */
  call<T = unknown>(method: string, params?: object): Promise<T>;
  /** Parses an action request into an intent; decides and records nothing. */
  parse(agentId: string, input: string | ToolInput, context?: Record<string, unknown>): Promise<Parse>;
  /** Decides, and records the decision. */
  enforce(request: EnforceRequest): Promise<Verdict>;
  /** Reports how a granted action ended. The first outcome stands. */
  report(proofId: string, outcome: Outcome, note?: string): Promise<ProofRecord>;
  /** A page of the records of an agent; `narrow` takes the parameters of `proof/query`. */
  query(entityId: string, narrow?: Record<string, unknown>): Promise<Page>;
  /** The statistics of an agent. */
  stats(entityId: string, period?: { from?: string; to?: string }): Promise<Statistics>;
  /** Decides on a tool call, runs `work` where it is allowed, and reports the outcome. Throws `Denied` where it is not. */
  toolCall<T>(call: ToolCall, work: (verdict: Verdict) => T | Promise<T>): Promise<T>;
  /** The same function, decided on before each call and reported after it. */
  guard<A extends unknown[], R>(work: (...args: A) => R, options: GuardOptions): (...args: A) => Promise<Awaited<R>>;
  /**
   * Decides on a command and reports its outcome. Where it is allowed, `work` starts the words that it gets, in the
   * folder: those of the command, or `rulekeep exec` with a profile if the decision confines it.
   */
  guardCommand<T>(command: AgentCommand, work: (words: [string, ...string[]], verdict: Verdict) => T | Promise<T>): Promise<T>;
  /** Closes the connection. */
  close(): Promise<void>;
}
