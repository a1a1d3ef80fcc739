// SPDX-License-Identifier: MIT
// dsh_peer.mjs FOLDER - the packages @deepseek-ai/dsh-* under FOLDER/node_modules as a peer
// of the bench: their tools bash, job_output and job_kill behind MCP on stdin and stdout,
// under the names and with the texts that the bench knows. The protocol's cost is included.
//
//	ERRAND_BENCH_PEER='node bench/dsh_peer.mjs FOLDER' make bench
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const require = createRequire(resolve(process.argv[2] ?? '.', 'package.json'))
const load = (name) => import(pathToFileURL(require.resolve(`@deepseek-ai/${name}`)))

async function makeCall() {
  const { Context } = await load('cordis')
  const { CallId } = await load('dsh-llm')
  const { SessionId } = await load('dsh-session')
  const root = new Context()
  const plugins = [
    ['dsh-system-prompt'], ['dsh-tools'], ['dsh-agent'],
    ['dsh-jobs-local', { maxConcurrentJobsPerOwner: 100000 }],
    ['dsh-tool-jobs', {}], ['dsh-subprocess-local'], ['dsh-shell-env'],
    ['dsh-bash-local', {}, 'LocalBashExecutor'], ['dsh-tool-bash', {}],
  ]
  for (const [name, config, member = 'default'] of plugins) {
    const module = await load(name)
    await root.plugin(module[member] ?? module, config)
  }
  const id = SessionId('bench')
  const agent = {
    id, ctx: root.plugin(() => {}).ctx, status: 'running', inject() {}, followup() {},
    session: { id, header: { version: 0, id, createdAt: 0 } },
  }
  root.agents.register(agent)
  const signal = new AbortController().signal
  let last = 0
  return (name, args) => root.tools.execute(
    { signal, callId: CallId(`call-${++last}`), name, arguments: args, agent })
}

const call = await makeCall()

const tools = {
  bash: ({ command }) =>
    call('bash', { command, description: 'bench', run_in_background: true }),
  // Without a turn of the loop no output and no end would ever arrive.
  task_output: async ({ task_id, wait }) => {
    await new Promise((done) => setImmediate(done))
    return call('job_output', wait ? { job_id: task_id, wait, timeout_ms: 600000 }
                                   : { job_id: task_id })
  },
  task_kill: ({ task_id }) => call('job_kill', { job_id: task_id }),
}

function say(id, content, isError) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: { content, isError } })}\n`)
}

async function answer({ id, method, params }) {
  if (id === undefined) return
  if (method !== 'tools/call') return say(id, [], false)
  const { content, isError } = await tools[params.name](params.arguments)
  const text = content[0].text.replace('started background job', 'started background task')
  say(id, [{ type: 'text', text }], Boolean(isError))
}

const input = createInterface({ input: process.stdin })
input.on('line', (line) => answer(JSON.parse(line)))
input.on('close', () => process.exit(0))
