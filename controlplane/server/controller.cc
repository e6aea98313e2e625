// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/controller.h"

#include <arpa/inet.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "controlplane/api/nodes/enrollment.h"
#include "controlplane/api/nodes/node_service.h"
#include "controlplane/api/nodes/pod_review.h"
#include "controlplane/api/questions/replica_service.h"
#include "controlplane/api/services/audit_service.h"
#include "controlplane/api/services/cc_policies_service.h"
#include "controlplane/api/services/gateways_service.h"
#include "controlplane/api/services/operations_service.h"
#include "controlplane/api/services/pools_service.h"
#include "controlplane/api/services/role_bindings_service.h"
#include "controlplane/api/services/tenants_service.h"
#include "controlplane/donors/host_donors_service.h"
#include "controlplane/identity/certificate_authority.h"
#include "controlplane/identity/clock_watch.h"
#include "controlplane/identity/fleet_key_schedule.h"
#include "controlplane/identity/join_token.h"
#include "controlplane/identity/revocations.h"
#include "controlplane/identity/server_certificate.h"
#include "controlplane/kubeapi/api_server.h"
#include "controlplane/migrations/gates/prometheus_gates.h"
#include "controlplane/migrations/migration_driver.h"
#include "controlplane/migrations/migrations_service.h"
#include "controlplane/migrations/nodes/fleet_nodes.h"
#include "controlplane/model/timestamp.h"
#include "controlplane/server/controller_metrics.h"
#include "controlplane/server/front/connection_front.h"
#include "controlplane/server/front/connection_guard.h"
#include "controlplane/server/front/member_notice.h"
#include "controlplane/server/housekeeper.h"
#include "controlplane/server/join_file_publisher.h"
#include "controlplane/server/measured_store.h"
#include "controlplane/server/migrated_gateways.h"
#include "controlplane/store/etcd/etcd_store.h"
#include "controlplane/store/random_uuid.h"
#include "controlplane/store/sqlite/sqlite_store.h"
#include "controlplane/sync/connection_keeper.h"
#include "controlplane/sync/operation_keeper.h"
#include "controlplane/sync/presence.h"
#include "controlplane/upgrades/fleet_hosts.h"
#include "controlplane/upgrades/upgrade_driver.h"
#include "controlplane/upgrades/upgrades_service.h"
#include "controlplane/upgrades/upgrading_gateways.h"
#include "gateway/base/timing/heartbeat.h"
#include "gateway/base/unique_fd.h"
#include "gateway/disk/durable_file.h"
#include "gateway/process/http/metrics_server.h"
#include "gateway/process/lifecycle.h"
#include "gateway/process/readiness.h"
#include "gateway/process/runtime_dir.h"
#include "gateway/process/socket/unix_socket.h"
#include "gateway/process/watchdog.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::server {
namespace {

constexpr std::chrono::milliseconds kStopGrace(1000);
// The watchdog expects a beat of the main thread each second.
constexpr std::chrono::milliseconds kTick(1000);
constexpr std::chrono::seconds kRenewRetry(30);
constexpr unsigned kFileWatchSeconds = 1;
constexpr int kKeepaliveMs = 30000;
constexpr int kKeepaliveTimeoutMs = 10000;
constexpr int kLeastPingMs = 10000;
constexpr int kHandshakeTimeoutMs = 10000;
constexpr int kMostStreams = 256;    // per connection
constexpr int kMostIdleMs = 600000;  // idle time of a connection without calls
constexpr int kMostThreads = 64;
constexpr std::chrono::hours kFirstTokenLifetime(24);
constexpr std::chrono::seconds kPresenceTimeout(15);
constexpr process::SocketWords kAdminSocket = {"admin socket", "state_dir or admin_socket"};
constexpr char kAuthorityKey[] = "authority";

// Returns the addresses of this host for others.
std::vector<std::string> OwnAddresses(const Config& config, int port) {
  const auto with_port = [port](const std::string& host) {
    const bool v6 = host.find(':') != std::string::npos;
    return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  };
  const std::string host = config.address.substr(0, config.address.rfind(':'));
  if (host != "[::]" && host != "0.0.0.0") return {host + ":" + std::to_string(port)};
  std::vector<std::string> found;
  const std::vector<std::string> names = identity::NamesOfHost();
  for (const std::string& name : names) {
    in6_addr ignored;
    if (inet_pton(AF_INET, name.c_str(), &ignored) == 1 ||
        inet_pton(AF_INET6, name.c_str(), &ignored) == 1) {
      found.push_back(with_port(name));
    }
  }
  if (found.empty()) found.push_back(with_port(names.empty() ? "localhost" : names.front()));
  return found;
}

// Returns the addresses of the fleet for joining hosts.
std::vector<std::string> ReachableAt(const Config& config, int port) {
  return config.controllers.empty() ? OwnAddresses(config, port) : config.controllers;
}

std::string HostName() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

std::string Candidate() { return HostName() + " process " + std::to_string(getpid()); }

// Returns an id of this process.
std::string ReplicaId() { return HostName() + "-" + store::RandomUuid().substr(0, 8); }

// Parts that need an open store; destroyed in reverse order.
struct Fleet {
  Fleet(store::Store& store, const std::string& id, std::unique_ptr<sync::FleetFollower> f,
        std::unique_ptr<identity::Revocations> r, const identity::CertificateAuthority& authority,
        api::EnrollmentOptions options, identity::FleetKeySchedule key_schedule,
        api::Replicas::ChannelTo channel_to, migrations::PrometheusSettings prometheus)
      : follower(std::move(f)),
        revocations(std::move(r)),
        writer(store, *follower),
        backend{store, *follower, writer},
        statuses(store),
        operation_keeper(*follower, statuses),
        connection_keeper(*follower, statuses, id),
        hub(*follower, statuses, store.uuid(), {.controller = id}),
        other_controllers(*follower, id, std::move(channel_to)),
        router(tunnels, other_controllers),
        enrollment(store, *follower, authority, std::move(options)),
        keys(std::move(key_schedule)),
        tenants(backend),
        pools(backend, router),
        cc_policies(backend),
        role_bindings(backend),
        gateways(backend, hub, other_controllers, router, enrollment),
        operations(backend),
        audit(backend),
        gates(std::move(prometheus)),
        migration_nodes(*follower, router, enrollment.node_lifetime()),
        migrations(
            backend, gates, migration_nodes,
            {.prefix = std::string(upgrades::kUpgradePrefix), .read = upgrades::UpgradingGateways}),
        upgrades(backend,
                 {.prefix = std::string(migrations::kMigrationPrefix), .read = MigratedGateways}),
        upgrade_hosts(*follower, router),
        nodes(enrollment,
              {.backend = backend, .hub = hub, .tunnels = tunnels, .revocations = *revocations},
              keys),
        replicas(*follower, tunnels, hub),
        donor_reports(*follower, statuses, id),
        donors(backend, donor_searches),
        host_donors(backend, donor_reports, donor_searches) {
    backend.usage = &hub.usage();
  }

  std::vector<grpc::Service*> services() {
    return {&tenants,    &pools,    &cc_policies, &role_bindings, &gateways, &operations, &audit,
            &migrations, &upgrades, &nodes,       &replicas,      &donors,   &host_donors};
  }

  std::unique_ptr<sync::FleetFollower> follower;
  std::unique_ptr<identity::Revocations> revocations;
  api::Writer writer;
  api::Backend backend;
  sync::StatusWriter statuses;
  sync::OperationKeeper operation_keeper;
  sync::ConnectionKeeper connection_keeper;
  sync::NodeHub hub;
  sync::TunnelHub tunnels;
  api::Replicas other_controllers;
  api::QuestionRouter router;
  api::Enrollment enrollment;
  const identity::FleetKeySchedule keys;
  api::TenantsService tenants;
  api::PoolsService pools;
  api::CcPoliciesService cc_policies;
  api::RoleBindingsService role_bindings;
  api::GatewaysService gateways;
  api::OperationsService operations;
  api::AuditService audit;
  migrations::PrometheusGates gates;
  migrations::FleetNodes migration_nodes;
  migrations::MigrationsService migrations;
  upgrades::UpgradesService upgrades;
  upgrades::FleetHosts upgrade_hosts;
  api::NodeService nodes;
  api::ReplicaService replicas;
  donors::DonorReports donor_reports;
  donors::SearchCounts donor_searches;
  donors::DonorsService donors;
  donors::HostDonorsService host_donors;
};

// Names of our services at the health service.
constexpr const char* kServiceNames[] = {
    "rocegw.admin.v1.Tenants",      "rocegw.admin.v1.Pools",          "rocegw.admin.v1.CcPolicies",
    "rocegw.admin.v1.RoleBindings", "rocegw.admin.v1.Gateways",       "rocegw.admin.v1.Operations",
    "rocegw.admin.v1.Audit",        "rocegw.admin.v1.Migrations",     "rocegw.admin.v1.Upgrades",
    "rocegw.fleet.v1.NodeService",  "rocegw.fleet.v1.ReplicaService", "rocegw.admin.v1.Donors",
    "rocegw.fleet.v1.DonorService"};

}  // namespace

struct Controller::Parts {
  explicit Parts(Config c) : config(std::move(c)) {}

  Status OpenAuthority();
  Status OpenStore();
  Status CheckAuthority();
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) const;
  Status OpenApiServer();
  Status StartFleet();
  Status StartServer();
  void StopServer();
  Status StartMetrics();
  Status WriteFirstJoinFile();
  std::string Unready() const;

  Config config;
  process::RuntimeDir directory{"state_dir", "rocegw-controller", 0700};
  process::Readiness readiness;
  std::unique_ptr<identity::CertificateAuthority> authority;
  std::unique_ptr<identity::ServerCertificate> certificate;
  identity::TimePoint next_renewal;
  identity::ClockWatch clock;
  bool start_anew = false;
  std::unique_ptr<MeasuredStore> store;
  bool is_new = false;  // the store had no authority yet
  std::unique_ptr<sync::Presence> presence;
  // For kubernetes.join: the API server of the controller's cluster, and its users.
  std::unique_ptr<kubeapi::ApiServer> api_server;
  std::unique_ptr<api::PodReview> pod_review;
  std::unique_ptr<JoinFilePublisher> join_file_publisher;
  std::unique_ptr<Fleet> fleet;
  std::unique_ptr<ControllerMetrics> metrics;
  Heartbeat heartbeat;  // main thread
  process::Watchdog watchdog;
  std::unique_ptr<process::MetricsServer> metrics_server;
  std::unique_ptr<Housekeeper> housekeeper;
  migrations::MigrationBoard migration_board;
  std::unique_ptr<migrations::MigrationDriver> migration_driver;
  upgrades::UpgradeBoard upgrade_board;
  std::unique_ptr<upgrades::UpgradeDriver> upgrade_driver;
  std::unique_ptr<ConnectionFront> front;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
  bool serving = false;
  bool served = false;  // previous value
  process::Lifecycle lifecycle;
};

Status Controller::Parts::OpenAuthority() {
  auto opened = identity::CertificateAuthority::Open(config.state_dir, config.trust_domain);
  if (!opened.ok()) return opened.status();
  authority = std::move(*opened);
  std::vector<std::string> names = identity::NamesOfHost();
  names.insert(names.end(), config.names.begin(), config.names.end());
  certificate = std::make_unique<identity::ServerCertificate>(
      *authority, config.state_dir, std::move(names), config.server_lifetime);
  auto renewed = certificate->Renew();
  if (!renewed.ok()) return renewed.status();
  next_renewal = certificate->renew_at();
  return OkStatus();
}

Status Controller::Parts::OpenStore() {
  StatusOr<std::unique_ptr<store::Store>> opened = Status(EINVAL, "");
  if (config.backend == Backend::kEtcd) {
    opened = store::OpenEtcdStore({.endpoints = config.etcd.endpoints,
                                   .root = config.etcd.root,
                                   .ca_file = config.etcd.ca_file,
                                   .certificate_file = config.etcd.certificate_file,
                                   .key_file = config.etcd.key_file});
  } else {
    store::SqliteFileOptions options;
    options.path = config.state_dir + "/fleet.db";
    // The umask protects the file: it contains token hashes and role bindings.
    const mode_t old_mask = umask(0077);
    opened = store::OpenSqliteStore(options);
    umask(old_mask);
  }
  if (!opened.ok()) return opened.status();
  store = std::make_unique<MeasuredStore>(std::move(*opened));
  return CheckAuthority();
}

// All controllers of a store must have one authority; otherwise agents of one are strangers to
// another.
Status Controller::Parts::CheckAuthority() {
  auto found = store->Get(kAuthorityKey);
  if (!found.ok()) return found.status();
  controlplane::v1::AuthorityRecord record;
  if (found->has_value() && record.ParseFromString((*found)->value)) {
    if (record.fingerprint() == authority->fingerprint()) return OkStatus();
    if (!authority->Trusts(record.fingerprint())) {
      return {EINVAL, "state_dir " + config.state_dir +
                          ": the store belongs to a fleet with another certificate authority; copy "
                          "ca.key and ca.crt from a controller of that fleet, or append its ca.crt "
                          "to this one to let this authority take over"};
    }
  }
  is_new = !found->has_value();
  record.set_fingerprint(authority->fingerprint());
  store::Transaction transaction;
  transaction.compares = {
      store::Compare::ModifiedAt(kAuthorityKey, is_new ? 0 : (*found)->mod_revision)};
  transaction.then = {store::Operation::Put(kAuthorityKey, record.SerializeAsString())};
  auto written = store->Txn(std::move(transaction));
  if (!written.ok()) return written.status();
  // Another controller was faster: checks what it wrote.
  return written->succeeded ? OkStatus() : CheckAuthority();
}

// Returns a channel to another controller, with this one's current certificate.
std::shared_ptr<grpc::Channel> Controller::Parts::ChannelTo(const std::string& address) const {
  using grpc::experimental::FileWatcherCertificateProvider;
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<FileWatcherCertificateProvider>(
      certificate->key_file(), certificate->certificate_file(), certificate->authority_file(),
      kFileWatchSeconds));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(identity::ServerName(authority->domain()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, grpc::experimental::TlsCredentials(options), arguments);
}

Status Controller::Parts::OpenApiServer() {
  const KubernetesConfig& kubernetes = config.kubernetes;
  if (!kubernetes.join) return OkStatus();
  auto settings = kubeapi::InCluster(kubernetes.service_account_dir);
  if (!settings.ok())
    return {settings.status().error(), "kubernetes.join: " + settings.status().text()};
  api_server = std::make_unique<kubeapi::ApiServer>(std::move(*settings));
  pod_review = std::make_unique<api::PodReview>(
      *api_server,
      api::PodReviewSettings{.account = kubernetes.agent_account, .audience = kubernetes.audience});
  return OkStatus();
}

Status Controller::Parts::StartFleet() {
  // A port of 0 is known only after the server's start; only tests use it, and they set the
  // address.
  const int named = std::stoi(PortOf(config.address));
  // Registered before any stream can end here.
  const std::string id = ReplicaId();
  controlplane::v1::ReplicaRecord record;
  record.set_address(config.replica_address.empty() ? OwnAddresses(config, named).front()
                                                    : config.replica_address);
  record.set_name(Candidate());
  *record.mutable_start_time() = model::Now();
  presence = std::make_unique<sync::Presence>(*store, id, record);
  if (!presence->AwaitSaid(kPresenceTimeout))
    return {ETIMEDOUT, "store: it does not take that this controller is there"};
  auto follower = sync::FleetFollower::Start(*store);
  if (!follower.ok()) return follower.status();
  auto revocations = identity::Revocations::Start(*store);
  if (!revocations.ok()) return revocations.status();
  if (Status opened = OpenApiServer(); !opened.ok()) return opened;
  auto secret = authority->DerivedSecret("keys of the fleet");
  if (!secret.ok()) return secret.status();
  fleet = std::make_unique<Fleet>(
      *store, id, std::move(*follower), std::move(*revocations), *authority,
      api::EnrollmentOptions{.node_lifetime = config.node_lifetime,
                             .controllers = ReachableAt(config, named),
                             .pods = pod_review.get()},
      identity::FleetKeySchedule(std::move(*secret), config.fleet_key_period),
      [this](const std::string& address) { return ChannelTo(address); },
      migrations::PrometheusSettings{.url = config.prometheus.url,
                                     .ca_file = config.prometheus.ca_file,
                                     .token_file = config.prometheus.token_file});
  if (pod_review != nullptr && !config.kubernetes.join_config_map.empty()) {
    join_file_publisher = std::make_unique<JoinFilePublisher>(
        *api_server, config.kubernetes.join_config_map, fleet->enrollment.PodJoinFile());
  }
  metrics = std::make_unique<ControllerMetrics>(*store, *fleet->follower, fleet->hub, readiness);
  metrics->SetPodReview(pod_review.get());
  metrics->SetMigrations(&migration_board);
  metrics->SetUpgrades(&upgrade_board);
  metrics->SetDonors(&fleet->donor_reports, &fleet->donor_searches);
  metrics->SetAuthorityExpiry(authority->not_after());
  metrics->SetServerExpiry(certificate->not_after());
  return OkStatus();
}

Status Controller::Parts::StartServer() {
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  front = std::make_unique<ConnectionFront>(LimitsFor(descriptors.rlim_cur));
  if (Status status = front->Listen(config.address); !status.ok()) return status;
  const std::string socket = config.AdminSocket();
  if (Status status = process::ClaimSocket(kAdminSocket, socket); !status.ok()) return status;

  using grpc::experimental::FileWatcherCertificateProvider;
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<FileWatcherCertificateProvider>(
          certificate->key_file(), certificate->certificate_file(), certificate->authority_file(),
          kFileWatchSeconds));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  // Certificates are requested, and verified if given. The guard lists what needs none.
  options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  const auto credentials = grpc::experimental::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(
      std::make_shared<ConnectionGuard>(*fleet->revocations, authority->domain()));

  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  using Builder = grpc::ServerBuilder::experimental_type;
  acceptor = builder.experimental().AddExternalConnectionAcceptor(
      Builder::ExternalConnectionType::FROM_FD, credentials);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> notices;
  notices.push_back(std::make_unique<MemberNotice>(*front));
  builder.experimental().SetInterceptorCreators(std::move(notices));
  builder.AddListeningPort("unix:" + socket, grpc::experimental::LocalServerCredentials(UDS));
  for (grpc::Service* const service : fleet->services()) builder.RegisterService(service);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMostIdleMs);
  // Synchronous services (reflection) use a thread per call.
  builder.SetResourceQuota(grpc::ResourceQuota("controller").SetMaxThreads(kMostThreads));
  // Detects vanished agents, and allows agents to check the connection.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kLeastPingMs);
  // Only this user may open the socket from the start.
  const mode_t old_mask = umask(0177);
  server = builder.BuildAndStart();
  umask(old_mask);
  if (server == nullptr) {
    front.reset();
    return {EIO, "admin socket " + socket + ": gRPC could not start there"};
  }
  metrics->SetFront(front.get());
  return front->Start([this](int listener, int connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters accepted;
    accepted.listener_fd = listener;
    accepted.fd = connection;
    acceptor->HandleNewConnection(&accepted);
  });
}

void Controller::Parts::StopServer() {
  front->Stop();
  server->GetHealthCheckService()->Shutdown();
  fleet->hub.CloseAll(sync::StreamEnd::kClosing);
  fleet->other_controllers.Close();
  fleet->router.Close();
  server->Shutdown(std::chrono::system_clock::now() + kStopGrace);
  server->Wait();
  server.reset();
  acceptor.reset();
  unlink(config.AdminSocket().c_str());
}

Status Controller::Parts::StartMetrics() {
  if (config.metrics_address.empty()) return OkStatus();
  metrics_server = std::make_unique<process::MetricsServer>(*metrics, readiness, &watchdog);
  return metrics_server->Start(config.metrics_address);
}

// New fleet: lets the first host join with one command.
Status Controller::Parts::WriteFirstJoinFile() {
  const std::string path = config.state_dir + "/join.yaml";
  if (!is_new) return OkStatus();
  std::promise<std::variant<std::string, api::ApiError>> answer;
  fleet->enrollment.CreateToken(
      {.principal = api::kLocalAdministrator, .peer = "", .method = "first start", .tenants = {}},
      {}, kFirstTokenLifetime, [&](auto outcome) { answer.set_value(std::move(outcome)); });
  const auto outcome = answer.get_future().get();
  if (const auto* error = std::get_if<api::ApiError>(&outcome)) return {EIO, error->message};
  return WriteDurably(path, std::get<std::string>(outcome), 0600);
}

std::string Controller::Parts::Unready() const {
  if (const Status status = fleet->follower->status(); !status.ok()) {
    return "the store cannot be followed: " + status.text();
  }
  if (const Status status = fleet->revocations->status(); !status.ok()) {
    return "revocations cannot be followed: " + status.text();
  }
  const std::string it_is = "; the clock of this host says " + identity::TimeText(identity::Now());
  if (identity::Now() < authority->not_before()) {
    return "the certificate authority begins at " + identity::TimeText(authority->not_before()) +
           it_is;
  }
  if (identity::Now() >= authority->not_after()) {
    return "the certificate authority has ended at " + identity::TimeText(authority->not_after()) +
           it_is;
  }
  if (identity::Now() >= certificate->not_after()) {
    return "the controller's certificate has ended at " +
           identity::TimeText(certificate->not_after()) + it_is;
  }
  return {};
}

Controller::Controller(Config config) : parts_(std::make_unique<Parts>(std::move(config))) {
  Parts* const parts = parts_.get();
  process::Lifecycle& lifecycle = parts->lifecycle;
  const auto nothing = [] {};
  lifecycle.Add(
      "state directory", [parts] { return parts->directory.Claim(parts->config.state_dir); },
      [parts] { parts->directory.Release(); });
  lifecycle.Add(
      "authority", [parts] { return parts->OpenAuthority(); }, nothing);
  lifecycle.Add(
      "store", [parts] { return parts->OpenStore(); }, [parts] { parts->store.reset(); });
  lifecycle.Add(
      "fleet", [parts] { return parts->StartFleet(); },
      [parts] {
        parts->metrics.reset();
        // Its threads use the fleet.
        parts->api_server.reset();
        parts->fleet.reset();
        parts->join_file_publisher.reset();
        parts->pod_review.reset();
        parts->presence.reset();
      });
  lifecycle.Add(
      "server", [parts] { return parts->StartServer(); }, [parts] { parts->StopServer(); });
  lifecycle.Add(
      "metrics", [parts] { return parts->StartMetrics(); },
      [parts] { parts->metrics_server.reset(); });
  lifecycle.Add(
      "watchdog",
      [parts] {
        parts->watchdog.Watch("the main thread", parts->heartbeat);
        parts->watchdog.Watch("the connection front", parts->front->heartbeat());
        parts->watchdog.Start();
        return OkStatus();
      },
      [parts] { parts->watchdog.Stop(); });
  lifecycle.Add(
      "housekeeper",
      [parts] {
        parts->housekeeper = std::make_unique<Housekeeper>(
            *parts->store, Housekeeper::Options{.candidate = Candidate(),
                                                .interval = parts->config.seal_interval,
                                                .keep_history = parts->config.keep_history});
        return OkStatus();
      },
      [parts] { parts->housekeeper.reset(); });
  lifecycle.Add(
      "migrations",
      [parts] {
        parts->migration_driver = std::make_unique<migrations::MigrationDriver>(
            *parts->store, parts->fleet->migration_nodes, parts->fleet->gates,
            parts->migration_board, Candidate());
        return OkStatus();
      },
      [parts] { parts->migration_driver.reset(); });
  lifecycle.Add(
      "upgrades",
      [parts] {
        parts->upgrade_driver = std::make_unique<upgrades::UpgradeDriver>(
            *parts->store, parts->fleet->upgrade_hosts, parts->upgrade_board, Candidate());
        return OkStatus();
      },
      [parts] { parts->upgrade_driver.reset(); });
  lifecycle.Add(
      "first token", [parts] { return parts->WriteFirstJoinFile(); }, nothing);
}

Controller::~Controller() { Stop(); }

Status Controller::Start() {
  if (Status status = parts_->lifecycle.Start(); !status.ok()) return status;
  parts_->heartbeat.Begin();
  Tick();
  return OkStatus();
}

void Controller::Stop() {
  parts_->readiness.SetNotReady("stopping");
  // The stop has a deadline of its own.
  parts_->heartbeat.End();
  parts_->lifecycle.Stop();
}

std::chrono::milliseconds Controller::Tick() {
  Parts& parts = *parts_;
  parts.heartbeat.Beat();
  if (const auto step = parts.clock.Look(identity::Now(), std::chrono::steady_clock::now())) {
    spdlog::warn("{}", identity::ClockStepText(*step));
    parts.metrics->SetClockSteps(parts.clock.steps());
    parts.start_anew = *step <= identity::kStepToStartAnew;
    parts.next_renewal =
        parts.certificate->IsDue() ? identity::Now() : parts.certificate->renew_at();
  }
  if (identity::Now() >= parts.next_renewal) {
    auto renewed = parts.certificate->Renew();
    if (renewed.ok()) {
      spdlog::info("the controller's certificate is renewed, until {}",
                   identity::TimeText(parts.certificate->not_after()));
      parts.metrics->SetServerExpiry(parts.certificate->not_after());
      parts.next_renewal = parts.certificate->renew_at();
    } else {
      spdlog::error("the controller's certificate cannot be renewed: {}", renewed.status().text());
    }
    // At least one interval between renewals, even if the lifetime is shorter than the backdating.
    parts.next_renewal =
        std::max(parts.next_renewal,
                 identity::Now() + (renewed.ok() ? std::chrono::seconds(1) : kRenewRetry));
  }
  if (parts.join_file_publisher != nullptr)
    parts.join_file_publisher->Look(std::chrono::steady_clock::now());
  const std::string unready = parts.Unready();
  const bool serving = unready.empty();
  if (serving) {
    parts.readiness.SetReady();
  } else {
    if (parts.serving) spdlog::error("{}", unready);
    parts.readiness.SetNotReady(unready);
  }
  if (serving != parts.serving) {
    if (serving && parts.served) spdlog::info("the store is followed again");
    parts.serving = serving;
    parts.served = true;
    auto* const health = parts.server->GetHealthCheckService();
    health->SetServingStatus(serving);
    for (const char* const name : kServiceNames) health->SetServingStatus(name, serving);
  }
  parts.metrics->SetLeads(parts.housekeeper->leads());
  const auto until =
      std::chrono::duration_cast<std::chrono::milliseconds>(parts.next_renewal - identity::Now());
  return std::clamp(until, std::chrono::milliseconds(0), kTick);
}

bool Controller::WantsToStartAnew() const { return parts_->start_anew; }

std::string Controller::Summary() const {
  const Config& config = parts_->config;
  return "agents and clients on " + config.address.substr(0, config.address.rfind(':')) + ":" +
         std::to_string(port()) + ", administrators on " + config.AdminSocket() + ", store " +
         std::string(parts_->store->backend());
}

std::string Controller::HowToJoin() const {
  const Config& config = parts_->config;
  std::string text;
  if (parts_->is_new) {
    text += "This host joins with:\n  rocegw-agent --join " + config.state_dir + "/join.yaml\n";
  }
  return text + "Any other host, each with a file of its own:\n  rocegw-controller --state-dir " +
         config.state_dir + " join-token | ssh root@HOST rocegw-agent --join -\n";
}

int Controller::port() const { return parts_->front == nullptr ? 0 : parts_->front->port(); }

}  // namespace rocegw::server
