"""Submits executions for some time, over NATS' text protocol: Agents that call tools, steps that
wait, fail, run out of time or ask a person, a burst, and one durable submission that is refused.

    load.py NATS_PORT HTTP_URL SECONDS
"""

import itertools
import json
import socket
import sys
import threading
import time

MODEL = "@n8n/n8n-nodes-langchain.lmChatOpenAi"


def node(name, type_, version, **parameters):
    made = {"id": name, "name": name, "type": type_, "typeVersion": version, "position": [0, 0], "parameters": parameters}
    if type_ == MODEL:
        made["credentials"] = {"openAiApi": {"id": "mock-llm", "name": "Mock LLM"}}
    return made


def workflow(name, nodes, links, **settings):
    """links: (from, kind of connection, to)."""
    connections = {}
    for source, kind, target in links:
        kinds = connections.setdefault(source, {}).setdefault(kind, [[]])
        kinds[0].append({"node": target, "type": kind, "index": 0})
    return {"id": name, "name": name, "nodes": nodes, "connections": connections, "settings": {"executionOrder": "v1", **settings}}


def agent(name, model, prompt, tools, **settings):
    """An Agent with tools: (node, whom it is a tool of)."""
    nodes = [
        node("Start", "n8n-nodes-base.manualTrigger", 1),
        node("AI Agent", "@n8n/n8n-nodes-langchain.agent", 3.1, promptType="define", text=prompt, options={}),
        node("Model", MODEL, 1.3, model={"__rl": True, "mode": "id", "value": model}, responsesApiEnabled=False, options={"maxRetries": 0}),
    ]
    links = [("Start", "main", "AI Agent"), ("Model", "ai_languageModel", "AI Agent")]
    for tool, owner in tools:
        nodes.append(tool)
        links.append((tool["name"], "ai_tool", owner))
    return workflow(name, nodes, links, **settings)


def workflows(http_url):
    calculator = (node("Calculator", "@n8n/n8n-nodes-langchain.toolCalculator", 1), "AI Agent")
    http = (node("Look up", "n8n-nodes-base.httpRequestTool", 4.2, toolDescription="Looks something up", method="GET", url=http_url, options={}), "AI Agent")
    gate = (node("Ask a person", "reprise.approvalHitlTool", 1, message="Is that right?", timeout=""), "AI Agent")
    refund = (node("Send refund", "@n8n/n8n-nodes-langchain.toolCode", 1.3, description="Sends a refund", jsCode="return 'sent: ' + query;"), "Ask a person")
    wait = workflow(
        "wait",
        [node("Start", "n8n-nodes-base.manualTrigger", 1), node("Wait", "n8n-nodes-base.wait", 1.1, resume="timeInterval", amount=3, unit="seconds")],
        [("Start", "main", "Wait")],
    )
    broken = workflow(
        "not found",
        [node("Start", "n8n-nodes-base.manualTrigger", 1), node("Get", "n8n-nodes-base.httpRequest", 4.2, method="GET", url=http_url + "/nothing", options={})],
        [("Start", "main", "Get")],
    )
    return {
        "answer": agent("answer", "small", "compute 6 * 7", [calculator]),
        "look up": agent("look up", "small", "look up and compute 6 * 7", [calculator, http]),
        "think": agent("think", "large", "compute 6 * 7", [calculator]),
        "ask": agent("ask", "small", "send refund to Ada: compute 8 * 5 euros", [gate, refund]),
        "model fails": agent("model fails", "broken", "compute 6 * 7", []),
        "too slow": agent("too slow", "large", "compute 6 * 7", [], executionTimeout=1),
        "not found": broken,
        "wait": wait,
    }


# What is submitted, over and over; three of 28 end badly.
MIX = ["answer", "look up", "think", "answer", "wait", "look up", "answer"] * 2
MIX += ["think", "answer", "look up", "ask", "answer", "wait", "answer"] * 2
MIX[5], MIX[12], MIX[19] = "model fails", "not found", "too slow"

RATE, BURST_RATE = 6, 18  # executions per second
BURST = (0.22, 0.34)  # when, as parts of the time


def main():
    port, http_url, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    documents = workflows(http_url)
    connection = socket.create_connection(("127.0.0.1", port))
    answers = {"ok": 0, "refused": 0}

    def send(subject, body, reply=""):
        payload = json.dumps(body).encode()
        connection.sendall(f"PUB {subject} {reply} {len(payload)}\r\n".encode() + payload + b"\r\n")

    def read():
        stream = connection.makefile("rb")
        for line in stream:
            word = line.split()
            if word[0] == b"PING":
                connection.sendall(b"PONG\r\n")
            elif word[0] in (b"MSG", b"HMSG"):
                body = stream.read(int(word[-1]) + 2)
                kind = "ok" if word[0] == b"MSG" else "refused"
                if kind == "refused" and not answers["refused"]:
                    print("refused:", body.decode(errors="replace"), file=sys.stderr)
                answers[kind] += 1
            elif word[0] == b"-ERR":
                print(line.decode(), file=sys.stderr)

    connection.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB answers 1\r\n')
    threading.Thread(target=read, daemon=True).start()

    begun, sent, refused = time.monotonic(), 0, False
    for name in itertools.cycle(MIX):
        passed = time.monotonic() - begun
        if passed > seconds:
            break
        send("reprise.submit", {"v": 1, "workflow": documents[name]}, "answers")
        sent += 1
        if not refused and passed > seconds * 0.45:
            send("reprise.submission", {"v": 1, "id": "refused", "workflow": {"nodes": [{"name": "no type"}], "connections": {}}})
            refused = True
        time.sleep(1 / (BURST_RATE if BURST[0] < passed / seconds < BURST[1] else RATE))
    deadline = time.monotonic() + 10
    while sum(answers.values()) < sent and time.monotonic() < deadline:
        time.sleep(0.1)
    print(f"{sent} executions submitted, {answers['ok']} accepted, {answers['refused']} refused")
    if answers["ok"] != sent:
        sys.exit("some submissions were not accepted")


main()
