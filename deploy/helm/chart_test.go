// Package helm_test renders the chart as Helm does, and reads what comes out as Kubernetes does.
// It is a module of its own, so that the programs do not depend on either.
package helm_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// everything switches on all that the chart can do.
const everything = `
image: {repository: registry.example.com/reprise, tag: "1.0"}
imagePullSecrets: [{name: registry}]
nats: {urlSecret: nats-urls, caSecret: nats-ca, inboxPerRole: true, replicas: 3}
redis: {urlSecret: redis-url, caSecret: redis-ca}
keysSecret: keys
coordinator:
  replicas: 3
  env: {REPRISE_RETENTION: 72h}
  publicURL: https://reprise.example.com
pools:
  default:
    credentialsSecret: credentials
    env:
      REPRISE_EGRESS_ALLOW: ollama:11434
      REPRISE_FILES_DIRS: /files
      REPRISE_PYTHON: "on"
    extraVolumes: [{name: files, persistentVolumeClaim: {claimName: files}}]
    extraVolumeMounts: [{name: files, mountPath: /files}]
  gpu:
    concurrency: 4
    nodeSelector: {gpu: "true"}
    tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
    autoscaling: {enabled: true, minReplicas: 0, maxReplicas: 3, lagThreshold: 2, account: REPRISE}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
networkPolicy: {enabled: true}
`

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load("reprise")
	require.NoError(t, err)
	return c
}

// objects renders the chart and reads each object, strictly, as the type that its kind stands for.
func objects(t *testing.T, values string) map[string]any {
	t.Helper()
	given := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(values), &given))
	c := load(t)
	release := common.ReleaseOptions{Name: "test", Namespace: "default", IsInstall: true, Revision: 1}
	rendered, err := util.ToRenderValues(c, given, release, common.DefaultCapabilities)
	require.NoError(t, err)
	files, err := engine.Render(c, rendered)
	require.NoError(t, err)
	found := map[string]any{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		for document := range strings.SplitSeq(files[file], "\n---\n") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			var head struct {
				Kind     string
				Metadata struct{ Name string }
			}
			require.NoError(t, yaml.Unmarshal([]byte(document), &head), document)
			types := map[string]any{
				"Deployment": &apps.Deployment{}, "Service": &core.Service{}, "PodDisruptionBudget": &policy.PodDisruptionBudget{},
				"NetworkPolicy": &networking.NetworkPolicy{}, "ScaledObject": &map[string]any{}, "ServiceMonitor": &map[string]any{},
			}
			object, known := types[head.Kind]
			require.True(t, known, "%s: kind %q", file, head.Kind)
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), object), document)
			name := head.Kind + "/" + head.Metadata.Name
			require.NotContains(t, found, name, "two objects of one name")
			found[name] = object
		}
	}
	return found
}

// container is the one container of a Deployment, after its volumes were compared with its mounts.
func container(t *testing.T, found map[string]any, name string) core.Container {
	t.Helper()
	require.Contains(t, found, "Deployment/"+name)
	d := found["Deployment/"+name].(*apps.Deployment)
	require.Equal(t, d.Spec.Selector.MatchLabels, intersection(d.Spec.Selector.MatchLabels, d.Spec.Template.Labels), "the selector finds its pods")
	pod := d.Spec.Template.Spec
	require.Len(t, pod.Containers, 1)
	c := pod.Containers[0]
	var volumes, mounts []string
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, m := range c.VolumeMounts {
		mounts = append(mounts, m.Name)
	}
	require.ElementsMatch(t, volumes, mounts)
	return c
}

func intersection(a, b map[string]string) map[string]string {
	both := map[string]string{}
	for key, value := range a {
		if b[key] == value {
			both[key] = value
		}
	}
	return both
}

func environment(c core.Container) map[string]string {
	env := map[string]string{}
	for _, v := range c.Env {
		env[v.Name] = v.Value
	}
	return env
}

func TestDefaults(t *testing.T) {
	found := objects(t, "")
	require.Len(t, found, 3)
	require.Contains(t, found, "PodDisruptionBudget/test-reprise-coordinator")
	coordinator := container(t, found, "test-reprise-coordinator")
	require.Equal(t, []string{"coordinator"}, coordinator.Args)
	require.Equal(t, "redis://redis:6379/0", environment(coordinator)["REPRISE_REDIS_URL"])
	worker := container(t, found, "test-reprise-worker-default")
	require.Equal(t, []string{"worker"}, worker.Args)
	require.NotContains(t, environment(worker), "REPRISE_REDIS_URL", "a worker has no business there")
	for _, c := range []core.Container{coordinator, worker} {
		require.Equal(t, "nats://nats:4222", environment(c)["REPRISE_NATS_URL"])
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	}
}

func TestEverything(t *testing.T) {
	found := objects(t, everything)
	require.ElementsMatch(t, slices.Collect(maps.Keys(found)), []string{
		"Deployment/test-reprise-coordinator", "Deployment/test-reprise-worker-default", "Deployment/test-reprise-worker-gpu",
		"PodDisruptionBudget/test-reprise-coordinator", "Service/test-reprise-http", "Service/test-reprise-metrics",
		"NetworkPolicy/test-reprise-coordinator", "NetworkPolicy/test-reprise-worker",
		"ScaledObject/test-reprise-worker-gpu", "ServiceMonitor/test-reprise",
	})
	// A secret in a variable would be seen by all who may read Deployments.
	for _, name := range []string{"test-reprise-coordinator", "test-reprise-worker-default", "test-reprise-worker-gpu"} {
		env := environment(container(t, found, name))
		require.NotContains(t, env, "REPRISE_NATS_URL")
		require.NotContains(t, env, "REPRISE_REDIS_URL")
		require.Equal(t, "/run/secrets/nats/url", env["REPRISE_NATS_URL_FILE"])
	}
	env := environment(container(t, found, "test-reprise-worker-default"))
	require.Equal(t, "/files", env["REPRISE_FILES_DIRS"])
	require.Equal(t, "_INBOX.default", env["REPRISE_NATS_INBOX_PREFIX"])
	scaled := found["Deployment/test-reprise-worker-gpu"].(*apps.Deployment)
	require.Nil(t, scaled.Spec.Replicas, "KEDA sets it")
	redis := found["NetworkPolicy/test-reprise-worker"].(*networking.NetworkPolicy)
	for _, rule := range redis.Spec.Egress {
		for _, port := range rule.Ports {
			require.NotEqual(t, 6379, port.Port.IntValue(), "workers do not reach Redis")
		}
	}
}

// What the chart sets has to be a setting of the program: the README lists them all.
func TestSettingsAreKnown(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for name, object := range objects(t, everything) {
		if _, ok := object.(*apps.Deployment); !ok {
			continue
		}
		for variable := range environment(container(t, map[string]any{name: object}, strings.TrimPrefix(name, "Deployment/"))) {
			require.Regexp(t, "`"+regexp.QuoteMeta(strings.TrimSuffix(variable, "_FILE"))+"(_FILE)?`", string(readme), name)
		}
	}
}

func TestWrongValues(t *testing.T) {
	for values, complaint := range map[string]string{
		`redis: {uri: redis://x}`:                           "uri",
		`nats: {url: "http://nats:4222"}`:                   "url",
		`nats: {replicas: 2}`:                               "replicas",
		`pools: {}`:                                         "", // the defaults stay
		`pools: {Default: {}}`:                              "Default",
		`pools: {default: {env: {"reprise-python": "on"}}}`: "reprise-python",
		`coordinator: {drainTimeout: 20}`:                   "drainTimeout",
	} {
		given := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte(values), &given))
		_, err := util.ToRenderValues(load(t), given, common.ReleaseOptions{Name: "test"}, common.DefaultCapabilities)
		if complaint == "" {
			require.NoError(t, err, values)
			continue
		}
		require.ErrorContains(t, err, complaint, values)
	}
}

func TestLint(t *testing.T) {
	given := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(everything), &given))
	for _, values := range []map[string]any{{}, given} {
		for _, m := range lint.RunAll("reprise", values, "default").Messages {
			require.Less(t, m.Severity, support.WarningSev, m.Error())
		}
	}
}
