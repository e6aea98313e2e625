// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/controller.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <utility>
#include <variant>

#include "controlplane/api/nodes/pod_review.h"
#include "controlplane/identity/revocations.h"
#include "controlplane/kubeapi/api_server.h"
#include "controlplane/migrations/migration_driver.h"
#include "controlplane/model/timestamp.h"
#include "controlplane/server/api_listener.h"
#include "controlplane/server/controller_identity.h"
#include "controlplane/server/fleet_services.h"
#include "controlplane/server/host_addresses.h"
#include "controlplane/server/housekeeper.h"
#include "controlplane/server/join_file_publisher.h"
#include "controlplane/server/metrics/controller_metrics.h"
#include "controlplane/server/metrics/measured_store.h"
#include "controlplane/store/etcd/etcd_store.h"
#include "controlplane/store/sqlite/sqlite_store.h"
#include "controlplane/sync/presence.h"
#include "controlplane/upgrades/upgrade_driver.h"
#include "gateway/base/timing/heartbeat.h"
#include "gateway/disk/durable_file.h"
#include "gateway/disk/scoped_umask.h"
#include "gateway/process/http/metrics_server.h"
#include "gateway/process/lifecycle.h"
#include "gateway/process/readiness.h"
#include "gateway/process/runtime_dir.h"
#include "gateway/process/watchdog.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::server {
namespace {

// The watchdog expects a beat of the main thread each second.
constexpr std::chrono::milliseconds kTick(1000);
constexpr std::chrono::hours kFirstTokenLifetime(24);
constexpr std::chrono::seconds kPresenceTimeout(15);

}  // namespace

struct Controller::Parts {
  explicit Parts(Config c) : config(std::move(c)) {}

  Status OpenStore();
  Status OpenApiServer();
  Status StartFleet();
  Status StartListener();
  Status StartMetrics();
  Status WriteFirstJoinFile();
  std::string Unready() const;

  Config config;
  process::RuntimeDir directory{"state_dir", "rocegw-controller", 0700};
  process::Readiness readiness;
  ControllerIdentity identity;
  std::unique_ptr<MeasuredStore> store;
  std::unique_ptr<sync::Presence> presence;
  // For kubernetes.join: the API server of the controller's cluster, and its users.
  std::unique_ptr<kubeapi::ApiServer> api_server;
  std::unique_ptr<api::PodReview> pod_review;
  std::unique_ptr<JoinFilePublisher> join_file_publisher;
  std::unique_ptr<FleetServices> fleet;
  std::unique_ptr<ControllerMetrics> metrics;
  Heartbeat heartbeat;  // main thread
  process::Watchdog watchdog;
  std::unique_ptr<process::MetricsServer> metrics_server;
  std::unique_ptr<Housekeeper> housekeeper;
  migrations::MigrationBoard migration_board;
  std::unique_ptr<migrations::MigrationDriver> migration_driver;
  upgrades::UpgradeBoard upgrade_board;
  std::unique_ptr<upgrades::UpgradeDriver> upgrade_driver;
  std::unique_ptr<ApiListener> listener;
  bool serving = false;
  bool served = false;  // previous value
  process::Lifecycle lifecycle;
};

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
    const ScopedUmask mask(0077);
    opened = store::OpenSqliteStore(options);
  }
  if (!opened.ok()) return opened.status();
  store = std::make_unique<MeasuredStore>(std::move(*opened));
  return identity.Claim(*store);
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
  auto secret = identity.authority().DerivedSecret("keys of the fleet");
  if (!secret.ok()) return secret.status();
  fleet = std::make_unique<FleetServices>(
      *store, id, std::move(*follower), std::move(*revocations), identity.authority(),
      api::EnrollmentOptions{.node_lifetime = config.node_lifetime,
                             .fleet_key_period = config.fleet_key_period,
                             .controllers = ReachableAt(config, named),
                             .pods = pod_review.get()},
      identity::FleetKeySchedule(std::move(*secret), config.fleet_key_period),
      [this](const std::string& address) { return identity.ChannelTo(address); },
      migrations::PrometheusSettings{.url = config.prometheus.url,
                                     .ca_file = config.prometheus.ca_file,
                                     .token_file = config.prometheus.token_file},
      config.donors.approved_gateways);
  if (pod_review != nullptr && !config.kubernetes.join_config_map.empty()) {
    join_file_publisher = std::make_unique<JoinFilePublisher>(
        *api_server, config.kubernetes.join_config_map, fleet->enrollment.PodJoinFile());
  }
  metrics = std::make_unique<ControllerMetrics>(*store, *fleet->follower, fleet->hub, readiness);
  metrics->SetPodReview(pod_review.get());
  metrics->SetMigrations(&migration_board);
  metrics->SetUpgrades(&upgrade_board);
  metrics->SetDonors(&fleet->donor_reports, &fleet->donor_searches);
  metrics->SetAuthorityExpiry(identity.authority().not_after());
  metrics->SetServerExpiry(identity.server_expiry());
  return OkStatus();
}

Status Controller::Parts::StartListener() {
  listener = std::make_unique<ApiListener>(config, identity, *fleet);
  if (Status status = listener->Start(); !status.ok()) return status;
  metrics->SetFront(listener->front());
  return OkStatus();
}

Status Controller::Parts::StartMetrics() {
  if (config.metrics_address.empty()) return OkStatus();
  metrics_server = std::make_unique<process::MetricsServer>(*metrics, readiness, &watchdog);
  return metrics_server->Start(config.metrics_address);
}

// New fleet: lets the first host join with one command.
Status Controller::Parts::WriteFirstJoinFile() {
  const std::string path = config.state_dir + "/join.yaml";
  if (!identity.claimed_new_store()) return OkStatus();
  std::promise<std::variant<std::string, api::ApiError>> answer;
  fleet->enrollment.CreateToken(
      {.principal = api::kLocalAdministrator, .peer = "", .method = "first start", .tenants = {}},
      {}, kFirstTokenLifetime, [&](auto outcome) { answer.set_value(std::move(outcome)); });
  const auto outcome = answer.get_future().get();
  if (const auto* error = std::get_if<api::ApiError>(&outcome)) return {EIO, error->message};
  return WriteDurably(path, std::get<std::string>(outcome), 0600);
}

std::string Controller::Parts::Unready() const {
  if (const Status status = fleet->Followed(); !status.ok()) return status.text();
  return identity.Invalid();
}

Controller::Controller(Config config) : parts_(std::make_unique<Parts>(std::move(config))) {
  Parts* const parts = parts_.get();
  process::Lifecycle& lifecycle = parts->lifecycle;
  const auto nothing = [] {};
  lifecycle.Add(
      "state directory", [parts] { return parts->directory.Claim(parts->config.state_dir); },
      [parts] { parts->directory.Release(); });
  lifecycle.Add(
      "authority", [parts] { return parts->identity.Open(parts->config); }, nothing);
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
      "server", [parts] { return parts->StartListener(); }, [parts] { parts->listener->Stop(); });
  lifecycle.Add(
      "metrics", [parts] { return parts->StartMetrics(); },
      [parts] { parts->metrics_server.reset(); });
  lifecycle.Add(
      "watchdog",
      [parts] {
        parts->watchdog.Watch("the main thread", parts->heartbeat);
        parts->watchdog.Watch("the connection front", parts->listener->front()->heartbeat());
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
  parts.identity.Keep();
  parts.metrics->SetClockSteps(parts.identity.clock_steps());
  parts.metrics->SetServerExpiry(parts.identity.server_expiry());
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
    parts.listener->SetServing(serving);
  }
  parts.metrics->SetLeads(parts.housekeeper->leads());
  const auto until = std::chrono::duration_cast<std::chrono::milliseconds>(
      parts.identity.next_renewal() - identity::Now());
  return std::clamp(until, std::chrono::milliseconds(0), kTick);
}

bool Controller::WantsToStartAnew() const { return parts_->identity.wants_to_start_anew(); }

std::string Controller::Summary() const {
  const Config& config = parts_->config;
  return "agents and clients on " + config.address.substr(0, config.address.rfind(':')) + ":" +
         std::to_string(port()) + ", administrators on " + config.AdminSocket() + ", store " +
         std::string(parts_->store->backend());
}

std::string Controller::HowToJoin() const {
  const Config& config = parts_->config;
  std::string text;
  if (parts_->identity.claimed_new_store()) {
    text += "This host joins with:\n  rocegw-agent --join " + config.state_dir + "/join.yaml\n";
  }
  return text + "Any other host, each with a file of its own:\n  rocegw-controller --state-dir " +
         config.state_dir + " join-token | ssh root@HOST rocegw-agent --join -\n";
}

int Controller::port() const { return parts_->listener == nullptr ? 0 : parts_->listener->port(); }

}  // namespace rocegw::server
