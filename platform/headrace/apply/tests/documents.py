"""Documents that several tests apply."""

from headrace.apply import Result, apply_document

EVERYTHING = """
legal_entities:
  north:
    name: Northern Compute GmbH
    address: [Speicherstraße 7, 20457 Hamburg]
    tax_id: DE 123 456 789
    email: billing@north.test
    company_data: [HRB 123456]
    invoice_prefix: NC-
    first_number: 500
pools:
  local:
    engine: llamacpp
    model: smollm2
    gpu_hour_cost: 2.5
    gpus_per_replica: 0.5
    api_key: the pool's secret
    replicas: ["http://127.0.0.1:9001/", {name: spare, url: "http://127.0.0.1:9002", enabled: false}]
providers:
  - {name: hosted, protocol: openai, base_url: "https://api.example.com/v1", api_key: the provider's secret}
models:
  - name: demo
    context_window: 8192
    default_max_tokens: 512
    prices:
      - {input: 0.5, cached_input: 0.05, output: 1.5, currency: EUR}
      - {input: 0.4, output: 1.2, currency: EUR, tenant: acme}
      - {input: 0.6, cached_input: 0.06, output: 1.8, currency: EUR, effective_from: 2199-01-01T00:00:00+01:00}
    route:
      targets:
        - {pool: local, conditions: {max_prompt_tokens: 8_000, modalities: [text], tools: no, tiers: [gold]}, weight: 3}
        - {provider: hosted, model: big, context_window: 4096, shadow: 5}
      timeouts: {connect: 2.5, first_byte: 30, between_events: 20, total: 300}
      latency_targets: {ttft: 0.5, tpot: 0.05}
      policy: least_loaded
      queue: {timeout: 12.5, length: 40}
      cache_scope: shared
      unknown_fields: drop
      ignore_eos: true
  - {name: org/other-1.5, context_window: 500}
tenants:
  acme:
    name: Acme & Söhne
    currency: EUR
    time_zone: Asia/Kolkata
    weight: 2.5
    legal_entity: north
    billing: {address: [Main Road 1, Pune], reference: PO 7, tax_rate: 18, discount_percent: 2.5, minimum_fee: 100}
    limits: {requests_per_minute: 600, concurrency: 10, models: {demo: {concurrency: 2}}}
    cached_input_weight: 0.25
    budgets:
      monthly: 2500.5
      extra: {amount: 1, period: day, hard: false, thresholds: [], increase: {amount: 0.5, until: 2199-01-01T00:00:00Z}}
    projects:
      web: {name: Web, weight: 3, limits: {output_tokens_per_minute: 1_000},
            budgets: [{name: web, amount: 9, model: demo}]}
      batch:
    members: {alice@acme.test: owner, bob@acme.test: developer}
    keys:
      - project: web
        models: [demo, org/other-1.5]
        limits: {max_output_tokens: 100, models: {demo: {requests_per_minute: 5, max_output_tokens: 50}}}
        budgets: {ci: {amount: 3, enabled: false}}
      - name: nightly
        project: batch
        priority: batch
        expires_at: 2027-01-31T00:00:00Z
        secret: an-operators-own-secret-0001
  globex:
    projects: [main]
    members: [{email: carol@globex.test, role: admin}]
    keys: {app: {}}
"""


def apply(text: str, *, dry_run: bool = False) -> Result:
    return apply_document(text, source="demo.yaml", actor="alice", dry_run=dry_run)


def changes(text: str) -> list[str]:
    """What applying `text` says it changed, a line each."""
    return [str(change) for change in apply(text).changes]
