// SPDX-License-Identifier: Apache-2.0
#include "agent/supervise/agent.h"

#include <grpcpp/client_context.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "controlplane/identity/certificate_diagnosis.h"
#include "gateway/disk/durable_file.h"
#include "proto/rules/finding.h"

namespace rocegw::agent {
namespace {

constexpr Duration kTick = Seconds(1);
constexpr std::chrono::seconds kRenewDeadline(20);
constexpr std::chrono::seconds kRenewRetry(30);

int64_t SecondsOf(identity::TimePoint time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

struct RenewCall {
  grpc::ClientContext context;
  fleet::v1::RenewRequest request;
  fleet::v1::RenewResponse response;
  std::unique_ptr<fleet::v1::NodeService::Stub> stub;
};

}  // namespace

Agent::Agent(ControlLoop& loop, NodeIdentity& identity, GatewayPort& gateway, AgentOptions options)
    : loop_(loop),
      identity_(identity),
      gateway_(gateway),
      options_(std::move(options)),
      core_(identity.gateway(), options_.version, *this),
      probes_(loop, gateway, options_.program_folder),
      adapter_calls_(loop, options_.adapters),
      replacement_(loop, gateway),
      fleet_key_file_(
          loop, options_.fleet_keys_file, identity.gateway(), [this] { return Channel(); },
          [this](int64_t seconds) { counters_.fleet_keys_taken = seconds; }),
      donor_office_(
          loop, options_.donors_dir, identity.gateway(), [this] { return Channel(); },
          counters_.donors) {
  Restore();
  Connect();
  Probe();
  Tick();
}

Agent::~Agent() {
  *alive_ = false;
  loop_.Cancel(probe_timer_);
  loop_.Cancel(tick_timer_);
  link_.reset();
}

void Agent::Restore() {
  if (options_.state_file.empty()) return;
  auto bytes = ReadSmallFile(options_.state_file);
  if (!bytes.ok()) {
    if (bytes.status().error() != ENOENT) spdlog::warn("{}", bytes.status().text());
    return;
  }
  types::v1::AppliedConfig saved;
  if (!saved.ParseFromString(*bytes)) {
    spdlog::warn("{} is damaged; waiting for the controller", options_.state_file);
    return;
  }
  core_.Restore(saved);
}

void Agent::Save(const DesiredConfig& config) {
  if (options_.state_file.empty()) return;
  const Status status = WriteDurably(options_.state_file, config.Saved().SerializeAsString(), 0600);
  if (!status.ok()) spdlog::error("{}", status.text());
}

// The controller ------------------------------------------------------------------------------

std::shared_ptr<grpc::Channel> Agent::Channel() {
  if (channel_ == nullptr) channel_ = identity_.ChannelTo(identity_.controllers()[controller_]);
  return channel_;
}

void Agent::Connect() {
  if (link_ != nullptr) core_.OnStreamClosed();
  link_.reset();
  DropQuestions();
  channel_.reset();
  ControllerEvents events;
  events.opened = [this] { core_.OnStreamOpened(ControlLoop::Now()); };
  events.accepted = [this] { OnAccepted(); };
  events.push = [this](const types::v1::Push& push) {
    OnAccepted();
    ++counters_.pushes;
    core_.OnPush(push);
    Note();
  };
  events.closed = [this](const grpc::Status& status) { OnClosed(status); };
  events.question = [this](const fleet::v1::TunnelQuestion& question) { OnQuestion(question); };
  events.tunnel_closed = [this] { DropQuestions(); };
  link_ = std::make_unique<ControllerLink>(
      loop_, [this] { return Channel(); }, identity_.gateway(), std::move(events));
  link_->Start();
}

void Agent::OnAccepted() {
  if (!counters_.controller_connected.exchange(true))
    spdlog::info("connected to the controller {}", identity_.controllers()[controller_]);
  last_problem_.clear();
}

void Agent::OnQuestion(const fleet::v1::TunnelQuestion& question) {
  if (question.cancel()) {
    gateway_.Cancel(question.id());
    return probes_.Cancel(question.id());
  }
  if (question.has_grant()) return gateway_.Grant(question.id(), question.grant());
  ++counters_.questions;
  const auto answer = [this, id = question.id(), tunnel = tunnel_](fleet::v1::TunnelAnswer part) {
    // Question ids of another controller are unrelated.
    if (link_ == nullptr || tunnel != tunnel_) return;
    if (part.has_diagnosis()) AddOwnDiagnoses(*part.mutable_diagnosis());
    part.set_id(id);
    link_->Answer(part);
  };
  if (question.has_probe()) return probes_.Start(question.id(), question.probe(), answer);
  if (question.has_migration_call()) return adapter_calls_.Start(question.migration_call(), answer);
  if (question.has_replace_gateway()) return replacement_.Start(question.replace_gateway(), answer);
  gateway_.Ask(question, answer);
}

void Agent::DropQuestions() {
  ++tunnel_;
  gateway_.CancelAll();
  probes_.CancelAll();
}

void Agent::AddOwnDiagnoses(gateway::v1::DiagnoseResponse& response) const {
  *response.add_diagnoses() = identity::DiagnoseCertificate(identity_.gateway(), identity_.issued(),
                                                            identity_.not_after(), identity::Now());
  rules::SortByWorst(response);
}

void Agent::OnClosed(const grpc::Status& status) {
  counters_.controller_connected = false;
  ++counters_.reconnects;
  core_.OnStreamClosed();
  const std::string problem =
      identity_.Explained(identity_.controllers()[controller_], status.error_message());
  if (problem != last_problem_) spdlog::warn("the controller's stream ended: {}", problem);
  last_problem_ = problem;
  // The next attempt goes to the next controller.
  if (identity_.controllers().size() > 1 && status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    controller_ = (controller_ + 1) % identity_.controllers().size();
    channel_.reset();
  }
}

void Agent::Send(const fleet::v1::SyncRequest& message) {
  if (link_ != nullptr) link_->Send(message);
}

// The gateway ---------------------------------------------------------------------------------

void Agent::Probe() {
  probe_timer_ = 0;
  gateway_.Probe([this](const StatusOr<GatewayProbe>& probe) { OnProbe(probe); });
}

void Agent::OnProbe(const StatusOr<GatewayProbe>& probe) {
  probe_timer_ = loop_.At(ControlLoop::Now() + options_.probe_every, [this] { Probe(); });
  if (!probe.ok()) return GatewayGone(probe.status().text());
  core_.OnGatewayStatus(probe.value().status, ControlLoop::Now());
  const bool anew = probe.value().started_ns != gateway_started_ns_;
  gateway_started_ns_ = probe.value().started_ns;
  if (anew || !core_.gateway_up()) LookAtConfig();
}

void Agent::LookAtConfig() {
  gateway_.GetConfig([this](const StatusOr<gateway::v1::GetConfigResponse>& config) {
    if (!config.ok()) return GatewayGone(config.status().text());
    if (!counters_.gateway_connected.exchange(true)) {
      spdlog::info("the gateway runs configuration {} revision {}", config.value().source(),
                   config.value().applied_revision());
    }
    core_.OnGatewayUp(config.value());
    Note();
  });
}

void Agent::GatewayGone(const std::string& why) {
  if (counters_.gateway_connected.exchange(false)) spdlog::warn("{}", why);
  gateway_started_ns_ = 0;
  core_.OnGatewayDown(ControlLoop::Now());
  Note();
}

void Agent::Apply(const types::v1::Push& push) {
  ++counters_.applies;
  gateway_.Apply(push, [this](const StatusOr<types::v1::PushReport>& report) {
    if (report.ok()) {
      for (const types::v1::Rejection& rejection : report.value().rejections()) {
        spdlog::warn("the gateway rejects {}: {} ({})", rejection.object(), rejection.message(),
                     rejection.reason());
      }
      core_.OnApplied(report.value());
    } else {
      ++counters_.failed_applies;
      core_.OnApplyFailed();
      GatewayGone(report.status().text());
    }
    Note();
  });
}

void Agent::Note() {
  counters_.in_sync = core_.in_sync();
  counters_.unadopted = core_.unadopted();
  counters_.desired_revision = core_.desired_revision();
  counters_.applied_revision = core_.applied_revision();
  counters_.rejections = core_.rejections();
}

// Time ----------------------------------------------------------------------------------------

void Agent::Tick() {
  tick_timer_ = loop_.At(ControlLoop::Now() + kTick, [this] { Tick(); });
  core_.Tick(ControlLoop::Now());
  counters_.certificate_expires = SecondsOf(identity_.not_after());
  const identity::TimePoint now = identity::Now();
  if (const auto step = clock_.Look(now, std::chrono::steady_clock::now())) {
    spdlog::warn("{}", identity::ClockStepText(*step));
    renew_again_ = now;
    if (*step <= identity::kStepToStartAnew) {
      start_anew_ = true;
      return loop_.Stop();
    }
  }
  const std::string invalid = identity_.WhyNotValid(now);
  if (invalid.empty() != last_invalid_.empty()) {
    if (invalid.empty()) {
      spdlog::info("the certificate is valid again");
    } else {
      spdlog::error("{}", invalid);
    }
  }
  last_invalid_ = invalid;
  if (!renewing_ && invalid.empty() && identity_.IsDueForRenewal(now) && now >= renew_again_)
    Renew();
}

void Agent::Renew() {
  auto request = identity_.CertificateRequest();
  if (!request.ok()) {
    spdlog::error("{}", request.status().text());
    renew_again_ = identity::Now() + kRenewRetry;
    return;
  }
  renewing_ = true;
  auto call = std::make_shared<RenewCall>();
  call->context.set_deadline(std::chrono::system_clock::now() + kRenewDeadline);
  call->request.set_gateway(identity_.gateway());
  call->request.set_certificate_request(*request);
  call->stub = fleet::v1::NodeService::NewStub(Channel());
  call->stub->async()->Renew(
      &call->context, &call->request, &call->response,
      [this, call, alive = alive_](const grpc::Status& answer) {
        // The loop, not a thread of gRPC, must be the last to hold the channel.
        (void)loop_.Post([this, call, alive, answer] {
          if (!*alive) return;
          renewing_ = false;
          renew_again_ = identity::Now() + kRenewRetry;
          Status status = answer.ok() ? identity_.TakeRenewed(call->response.certificate_chain(),
                                                              call->response.trust_bundle())
                                      : Status(EIO, answer.error_message());
          if (!status.ok())
            return spdlog::warn("the certificate is not renewed: {}", status.text());
          ++counters_.renewals;
          spdlog::info("the certificate is renewed until {}",
                       identity::TimeText(identity_.not_after()));
          // Connects with the new certificate; the old one expires soon.
          Connect();
        });
      });
}

}  // namespace rocegw::agent
