"""A model server on 127.0.0.1 that makes the given calls, one in each turn, and then says "done".

    model.py CALLS    CALLS: [{"name": ..., "arguments": {...}}, ...]

It prints its port, and then a line of JSON for each result that the host sends. It ends when its standard input does.
It speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini generateContent.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CALLS = json.loads(sys.argv[1])
SEEN = set()
LOCK = threading.Lock()


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": "mock", "object": "model"}]})

    def do_POST(self):
        body = json.loads(self.body() or b"{}")
        path = self.path.split("?")[0]
        for end, dialect in DIALECTS.items():
            if path.endswith(end):
                return dialect(self, body)
        self.answer({}, 404)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def answer(self, body, status=200):
        self.send(json.dumps(body), "application/json", status)

    def stream(self, events):
        named = [(f"event: {event['type']}\n" if "type" in event else "", json.dumps(event)) for event in events]
        self.send("".join(f"{name}data: {event}\n\n" for name, event in named), "text/event-stream")

    def send(self, text, kind, status=200):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def next_call(body, results):
    """The call of this turn, or None: a request without tools is about a title and the like."""
    with LOCK:
        for number, result in enumerate(results):
            if number not in SEEN:
                SEEN.add(number)
                print(json.dumps(result), flush=True)
    turn = len(results)
    return dict(CALLS[turn], id=f"call_{turn}") if body.get("tools") and turn < len(CALLS) else None


def anthropic(http, body):
    parts = [part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]]
    call = next_call(body, [part.get("content") for part in parts if part.get("type") == "tool_result"])
    if call:
        block = {"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call["arguments"])}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}
    stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    if not body.get("stream"):
        return http.answer(dict(message, content=[{"type": "text", "text": "done"}], **stop, usage=usage))
    http.stream([
        {"type": "message_start", "message": dict(message, stop_reason=None, stop_sequence=None, usage=usage)},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    ])


def responses(http, body):
    call = next_call(body, [item["output"] for item in body["input"] if item.get("type") == "function_call_output"])
    if call:
        item = {"type": "function_call", "id": "fc_1", "call_id": call["id"], "name": call["name"],
                "arguments": json.dumps(call["arguments"]), "status": "completed"}
    else:
        text = {"type": "output_text", "text": "done", "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "output": [item], "usage": usage}
    http.stream([
        {"type": "response.created", "response": dict(whole, status="in_progress", output=[])},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ])


def chat(http, body):
    call = next_call(body, [message["content"] for message in body["messages"] if message["role"] == "tool"])
    message = {"role": "assistant", "content": None if call else "done"}
    if call:
        function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        message["tool_calls"] = [{"index": 0, "id": call["id"], "type": "function", "function": function}]
    stop = "tool_calls" if call else "stop"
    whole = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": stop}
        return http.answer(dict(whole, object="chat.completion", choices=[choice], usage=usage))
    chunk = dict(whole, object="chat.completion.chunk")
    http.stream([
        dict(chunk, choices=[{"index": 0, "delta": message, "finish_reason": None}]),
        dict(chunk, choices=[{"index": 0, "delta": {}, "finish_reason": stop}], usage=usage),
    ])


def gemini(http, body):
    parts = [part for content in body["contents"] for part in content.get("parts", [])]
    call = next_call(body, [part["functionResponse"]["response"] for part in parts if "functionResponse" in part])
    part = {"functionCall": {"name": call["name"], "args": call["arguments"]}} if call else {"text": "done"}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    whole = {"candidates": [candidate], "usageMetadata": usage}
    http.stream([whole]) if "stream" in http.path else http.answer(whole)


DIALECTS = {
    "/messages": anthropic,
    "/responses": responses,
    "/chat/completions": chat,
    ":streamGenerateContent": gemini,
    ":generateContent": gemini,
}

server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
