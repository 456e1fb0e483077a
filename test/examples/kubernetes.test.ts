import { readdir, readFile } from 'node:fs/promises'

import ts from 'typescript'
import { parseAllDocuments } from 'yaml'

import { variables } from '#lib/config/config.js'
import { shutdownTimeouts } from '#lib/config/timeout.js'
import { testConfig } from '../helper.ts'
import t from '../suite.ts'

const FOLDER = 'examples/kubernetes'
const DEFAULT_MAX_CONNECTIONS = 100

interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string }
  spec: any
}

const manifests: Manifest[] = []
for (const name of await readdir(FOLDER)) {
  const documents = parseAllDocuments(await readFile(`${FOLDER}/${name}`, 'utf8'), { version: '1.1' })
  for (const document of documents) manifests.push(document.toJS())
}
const specOf = (kind: string) => manifests.find(manifest => manifest.kind === kind)?.spec
const deployment = specOf('Deployment')
const pods = [deployment, specOf('Job')].map(({ template }) => template.spec)

/**
 * The errors of each manifest by the types of kubernetes-types, which are made of the API's own schemas. All are
 * compiled together, a file each, because most of the time goes into the types.
 */
function check (manifests: Manifest[]) {
  const files = new Map(manifests.map((manifest, index) => [`manifest-${index}.ts`, `
    const manifest: import('kubernetes-types/${folderOf(manifest.apiVersion)}').${manifest.kind} =
      ${JSON.stringify(manifest)}
    export default manifest
  `]))
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    lib: ['lib.es5.d.ts'],
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  }
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists } = host
  host.fileExists = path => files.has(path) || fileExists(path)
  host.getSourceFile = (path, version, ...rest) => {
    const source = files.get(path)
    return source === undefined ? getSourceFile(path, version, ...rest) : ts.createSourceFile(path, source, version)
  }
  const program = ts.createProgram([...files.keys()], options, host)
  return [...files.keys()].map(file => ts.getPreEmitDiagnostics(program, program.getSourceFile(file))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')).join('\n'))
}

/** The folder of kubernetes-types for an API version: the core for `v1`, and one word for `networking.k8s.io`. */
function folderOf (apiVersion: string) {
  return apiVersion.replace(/^v1$/, 'core/v1').replace('.k8s.io', '')
}

t.test('The manifests are what the API of Kubernetes takes', async t => {
  t.strictSame(manifests.map(({ kind }) => kind).sort(), [
    'Deployment', 'HorizontalPodAutoscaler', 'Job', 'NetworkPolicy', 'PodDisruptionBudget', 'Service',
  ])
  const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'wrong' }, spec: {} }
  const wrong = [
    { ...budget, spec: { maxUnavailabel: 1 } },
    { ...budget, spec: { maxUnavailable: true } },
    { ...budget, kind: 'PodDisruption' },
    { ...budget, apiVersion: 'apps/v1', kind: 'Deployment', spec: { selector: {} } },
  ]
  const found = check([...manifests, budget, ...wrong])
  t.strictSame(found.splice(0, manifests.length + 1), Array(manifests.length + 1).fill(''))
  t.match(found, [/maxUnavailabel.* does not exist/, /'true' is not assignable/, /no exported member/, /'template'/])
})

t.test('They set variables that exist, to valid values, and secrets by files that are mounted', async t => {
  for (const { containers: [{ env, volumeMounts }], volumes } of pods) {
    for (const { name, value } of env as { name: string, value: string }[]) {
      t.hasProp(variables.properties, name.replace(/_FILE$/, ''))
      if (name === 'TRUST_PROXY') continue
      if (name.endsWith('_FILE')) t.ok(value.startsWith(`${volumeMounts[0].mountPath}/`), name)
      else t.doesNotThrow(() => testConfig({ [name]: value }), name)
    }
    t.equal(volumes[0].name, volumeMounts[0].name)
  }
})

t.test('A start fails until TRUST_PROXY is edited', async t => {
  const [{ containers: [{ env }] }] = pods
  const { value } = (env as { name: string, value: string }[]).find(({ name }) => name === 'TRUST_PROXY')!
  t.throws(() => testConfig({ TRUST_PROXY: value }), { message: /^TRUST_PROXY must be false, a number of proxies / })
})

t.test('The network lets in proxies and scrapes, and lets out what the service connects to', async t => {
  const { podSelector, policyTypes, ingress, egress } = specOf('NetworkPolicy')
  t.strictSame(policyTypes, ['Ingress', 'Egress'])
  const labels = [deployment, specOf('Job')].map(({ template }) => template.metadata.labels)
  for (const of of labels) t.match(of, podSelector.matchLabels)
  t.equal(ingress.length, 1)
  const [{ from, ports }] = ingress
  t.strictSame(ports, [{ protocol: 'TCP', port: pods[0].containers[0].ports[0].name }])
  for (const { namespaceSelector } of from) t.hasProp(namespaceSelector.matchLabels, 'kubernetes.io/metadata.name')
  t.strictSame(egress.flatMap(({ ports }: any) => ports).map(({ protocol, port }: any) => `${protocol} ${port}`),
    ['UDP 53', 'TCP 53', 'TCP 5432', 'TCP 443', 'TCP 587', 'TCP 465'])
})

t.test('Pods have the time that a stop may take, and probes the time that the database has', async t => {
  const [{ containers: [{ env, startupProbe, readinessProbe }], terminationGracePeriodSeconds }] = pods
  const settings: { name: string, value: string }[] = env
  const config = testConfig({ STOP_DELAY: settings.find(({ name }) => name === 'STOP_DELAY')!.value })
  const { total } = shutdownTimeouts(config)
  t.ok(terminationGracePeriodSeconds > total)
  t.match(await readFile(`${FOLDER}/service.yaml`, 'utf8'), `is ${total} seconds`)
  for (const probe of [startupProbe, readinessProbe]) t.ok(probe.timeoutSeconds > config.DATABASE_TIMEOUT)
})

t.test('A rolling update removes a pod only when its successor is ready', async t => {
  t.strictSame(deployment.strategy.rollingUpdate, { maxUnavailable: 0, maxSurge: 1 })
  const { minReplicas, maxReplicas, scaleTargetRef } = specOf('HorizontalPodAutoscaler')
  t.equal(scaleTargetRef.name, manifests.find(({ kind }) => kind === 'Deployment')?.metadata.name)
  t.ok(minReplicas > specOf('PodDisruptionBudget').maxUnavailable)
  const connections = (maxReplicas + 1) * (testConfig({}).DATABASE_POOL_SIZE + 2)
  t.ok(connections < DEFAULT_MAX_CONNECTIONS)
  t.match(await readFile(`${FOLDER}/service.yaml`, 'utf8'), `take ${connections}.`)
})
