// SPDX-License-Identifier: Apache-2.0
// The gateway's part in take-overs, as the process that is replaced and as the one that replaces.
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gateway/daemon/gateway.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/session/hand_over/session_versions.h"
#include "gateway/take_over/gateway_state.h"
#include "gateway/wire/datagram.h"

namespace rocegw::daemon {
namespace {

using take_over::Refusal;
using take_over::Refuse;

// Memory for the state is allocated and touched while the gateway serves.
constexpr uint64_t kLeastSpace = 1 << 20;
constexpr uint64_t kSpaceOfQueuePair = 1024;
constexpr uint64_t kMostSpace = 256 << 20;

// A signal during a take-over that this process started orders the next one.
constexpr Duration kOrderAgain = Milliseconds(100);

std::string TakeOverSocket(const Config& config) { return config.runtime_dir + "/take_over.sock"; }

std::string PortShape(const PortConfig& port) {
  std::string text =
      "port " + port.name + ": " + datapath::PortModeName(port.mode) + " on " + port.interface;
  if (port.only_address) text += ", address " + wire::AddressText(*port.only_address);
  text += port.steering == Steering::kQpn ? "" : ", steering hash";
  return text;
}

// Removes the file of a socket that this process did not take.
void RemoveSockets(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) ::unlink(path.c_str());
}

constexpr char kHasKeys[] = "keys of the fleet (gateways.key_file)";

}  // namespace

std::vector<std::string> Gateway::ShapeOf(const Config& config) {
  struct stat space {};
  (void)::stat("/proc/self/ns/net", &space);
  std::vector<std::string> lines = {
      "user " + std::to_string(::geteuid()), "network namespace " + std::to_string(space.st_ino),
      "runtime_dir " + config.runtime_dir,
      "workers " + std::to_string(datapath::DataPath::WorkersOf(config))};
  for (const PortConfig& port : config.ports) lines.push_back(PortShape(port));
  if (!config.gateways.key_file.empty()) lines.emplace_back(kHasKeys);
  return lines;
}

Status Gateway::StartTakeOvers() {
  Status status = take_over_server_.Start(TakeOverSocket(config_), inherited_);
  // A gateway that cannot be replaced is better than none.
  if (!status.ok()) spdlog::warn("{}; a new process cannot take over", status.text());
  return OkStatus();
}

std::optional<Refuse> Gateway::Judge(const take_over::Hello& hello) {
  OfferedFds fds;
  const std::string port = data_path_.ports().Offer(fds);
  if (!port.empty()) return Refuse{Refusal::kPortMode, "port " + port};
  std::vector<std::string> own = ShapeOf(config_);
  std::vector<std::string> theirs = hello.shape;
  // Only protected channels cannot go on without keys.
  if (config_.gateways.protection == FrameProtection::kOff) {
    std::erase(own, kHasKeys);
    std::erase(theirs, kHasKeys);
  }
  const auto missing = [](const std::vector<std::string>& in, const std::vector<std::string>& of) {
    const auto found = std::ranges::find_if(
        of, [&](const std::string& line) { return std::ranges::find(in, line) == in.end(); });
    return found == of.end() ? std::string("nothing") : "'" + *found + "'";
  };
  if (own != theirs) {
    return Refuse{Refusal::kConfiguration, "the new process has " + missing(own, theirs) +
                                               ", the running gateway " + missing(theirs, own)};
  }
  // An older gateway that lacks a feature in use is refused before anything stops.
  if (const std::string held = sessions()->attach().NotHandedOver(hello.versions); !held.empty())
    return Refuse{Refusal::kSessions, held};
  return std::nullopt;
}

OfferedFds Gateway::OfferFds() {
  OfferedFds fds;
  runtime_dir_.Offer(fds);
  (void)data_path_.ports().Offer(fds);
  sessions()->attach().Offer(fds);
  metrics_server_.Offer(fds);
  grpc_server_.Offer(fds);
  take_over_server_.Offer(fds);
  return fds;
}

void Gateway::Resume() {
  quiet_.End();
  state_space_ = {};
  // The successor may have written its number before it ended.
  (void)runtime_dir_.NameHolder();
  spdlog::info("take-over: this gateway goes on");
}

OfferedFds Gateway::OfferSessionFds() {
  OfferedFds fds;
  sessions()->attach().OfferSessions(fds);
  return fds;
}

// Programs know addresses by their indices.
StatusOr<std::vector<uint8_t>> Gateway::WriteFoundation(const hand_over::StateVersions& reader) {
  std::vector<uint8_t> bytes;
  hand_over::StateStream stream(bytes, ControlLoop::Now(), reader);
  data_path_.HandOverGids(stream);
  sessions()->HandOverFoundation(stream);
  if (!stream.ok()) return Status(EPROTO, stream.failure());
  return bytes;
}

void Gateway::LookAtSessions(const hand_over::StateVersions& reader) {
  sessions()->attach().LookAtSessions(reader);
}

StatusOr<std::vector<uint8_t>> Gateway::WriteUnchanged(const hand_over::StateVersions& reader) {
  std::vector<uint8_t> bytes;
  hand_over::StateStream stream(bytes, ControlLoop::Now(), reader);
  if (session::SessionsGoAhead(reader)) sessions()->HandOverUnchanged(stream);
  if (!stream.ok()) return Status(EPROTO, stream.failure());
  uint64_t queue_pairs = 0;
  sessions()->attach().ForEach(
      [&](const session::ClientSession& session) { queue_pairs += session.objects().qps.size(); });
  state_space_.assign(std::min(kLeastSpace + queue_pairs * kSpaceOfQueuePair, kMostSpace), 0);
  return bytes;
}

Status Gateway::ReadUnchanged() {
  if (!foundation_) return OkStatus();
  if (!foundation_->at_end()) sessions()->HandOverUnchanged(*foundation_);
  (void)foundation_->Require(foundation_->at_end(), "it is longer than what was read");
  if (!foundation_->ok()) return {EPROTO, std::string("state: ") + foundation_->failure()};
  return data_path_.LinkSessions();
}

StatusOr<std::vector<uint8_t>> Gateway::WriteState(const hand_over::StateVersions& reader) {
  std::vector<uint8_t> bytes = std::move(state_space_);
  bytes.clear();
  hand_over::StateStream stream(bytes, ControlLoop::Now(), reader);
  take_over::GatewayState state{quiet_.since().ns, sessions()->drains_locally(), take_overs_,
                                std::as_const(data_path_).ports().CountsByName()};
  state.HandOver(stream);
  sessions()->HandOverNumbers(stream);
  if (stream.ok()) sessions()->HandOverSessions(stream);
  take_over_steps_.End("sessions written", ControlLoop::Now());
  if (stream.ok()) (void)data_path_.HandOverWorkers(stream);
  if (!stream.ok())
    return Status(sessions()->attach().are_unchanged() ? EPROTO : EAGAIN, stream.failure());
  return bytes;
}

Status Gateway::Build(std::span<const uint8_t> bytes, TimePoint began) {
  take_over_steps_.Begin(began);
  hand_over::StateStream stream(bytes, ControlLoop::Now());
  take_over::GatewayState state;
  state.HandOver(stream);
  predecessor_quiet_.ns = state.quiet_since_ns;
  take_overs_ = state.history;
  data_path_.GoOnFrom(state.counts);
  if (state.drains_locally) sessions()->OrderDrainLocally(true);
  if (stream.ok()) sessions()->HandOverNumbers(stream);
  if (stream.ok()) sessions()->HandOverSessions(stream);
  take_over_steps_.End("sessions built", ControlLoop::Now());
  Status linked = OkStatus();
  if (stream.ok()) linked = data_path_.HandOverWorkers(stream);
  if (!linked.ok()) return linked;
  take_over_steps_.End("workers read", ControlLoop::Now());
  (void)stream.Require(stream.at_end(), "it is longer than what was read");
  if (!stream.ok()) return {EPROTO, std::string("state: ") + stream.failure()};
  return OkStatus();
}

session::TakeOverRow Gateway::TakeOvers() const {
  session::TakeOverRow row;
  row.count = take_overs_.count();
  row.blackouts = take_overs_.blackouts();
  row.last_blackout = take_overs_.last_blackout();
  row.last_ns = take_overs_.last_ns();
  row.descriptors = take_overs_.descriptors();
  row.from_version = take_overs_.from_version();
  for (size_t i = 0; i < take_over::kRefusalCount; ++i)
    row.refusals.emplace_back(take_over::kRefusals[i].label, take_overs_.refusals()[i]);
  return row;
}

void Gateway::OnRefused(Refusal refusal, const std::string& text) {
  take_overs_.AddRefusal(refusal);
  ordered_take_over_.OnRefused({refusal, text});
  std::string line = std::string("take-over: not done: ") + take_over::TextOf(refusal);
  if (!text.empty()) line += ": " + text;
  sessions()->services().events.Add("TAKE_OVER_REFUSED", "gateways/" + identity_.name,
                                    take_over::LabelOf(refusal), line, session::WallClockNs(),
                                    ControlLoop::Now());
  spdlog::warn(line);
}

void Gateway::Leave(pid_t successor, Duration blackout) {
  spdlog::info("take-over: process {} is the gateway after a pause of {:.1f} ms", successor,
               static_cast<double>(blackout.ns) / 1e6);
  spdlog::info("take-over: {}", take_over_steps_.Line());
  successor_ = successor;
  ordered_take_over_.OnReplaced(blackout, sessions()->totals());
  RequestStop();
}

void Gateway::OrderTakeOver() {
  if (ordered_take_over_.is_in_progress()) {
    if (order_again_ != 0) return;
    order_again_ = loop_.At(ControlLoop::Now() + kOrderAgain, [this] {
      order_again_ = 0;
      OrderTakeOver();
    });
    return;
  }
  ordered_take_over_.Start([](const StatusOr<service::TakeOverOutcome>& outcome) {
    // The gateway logs the refusals of a process that asked.
    if (!outcome.ok()) return spdlog::warn("take-over: {}", outcome.status().text());
    if (!outcome.value().refusal.empty())
      spdlog::warn("take-over: this process started it: {}", outcome.value().text);
  });
}

void Gateway::TakeOver(uint64_t take_overs, OrderedTakeOver::Done done) {
  // Shared, so that it can be called here if the loop does not take the task.
  auto shared = std::make_shared<OrderedTakeOver::Done>(std::move(done));
  const bool posted = loop_.Post([this, take_overs, shared] {
    if (stop_requested_) return (*shared)(Status(ESHUTDOWN, "the gateway is stopping"));
    if (take_overs != take_overs_.count()) {
      return (*shared)(Status(ESTALE, "the gateway has had " + std::to_string(take_overs_.count()) +
                                          " take-overs, not " + std::to_string(take_overs)));
    }
    spdlog::info("take-over: ordered by a caller of the gRPC socket");
    ordered_take_over_.Start(std::move(*shared));
  });
  if (!posted) (*shared)(Status(ESHUTDOWN, "the gateway is stopping"));
}

void Gateway::LeaveToSuccessor() {
  sysfs_counters_.Stop();
  sessions()->gate().StopTelling();
  WhileLooping([this] { grpc_server_.Leave(); });
  take_over_server_.Leave();
}

StatusOr<Duration> Gateway::Act(const std::string& predecessor_version, size_t descriptors) {
  if (Status status = data_path_.RunWorkers(/*parked=*/true); !status.ok()) return status;
  StartWatchdog();
  if (Status status = runtime_dir_.NameHolder(); !status.ok()) return status;
  if (Status status = StartTakeOvers(); !status.ok()) return status;
  RemoveSockets(inherited_->Discard(FdKind::kAttachListener));
  RemoveSockets(inherited_->Discard(FdKind::kGrpcListener));
  sessions()->RemoveLeftoverSlots();
  sessions()->attach().Inherit(nullptr);
  inherited_->clear();
  readiness_.SetReady();
  grpc_server_.SetServing(true);
  const Duration blackout = ControlLoop::Now() - predecessor_quiet_;
  take_overs_.Add(blackout, descriptors, predecessor_version, session::WallClockNs());
  const std::string line = "take-over from version " + predecessor_version + ": " +
                           std::to_string(descriptors) + " descriptors, pause of " +
                           std::to_string(blackout.ns / 1000) + " us";
  sessions()->services().events.Add("TAKEN_OVER", "gateways/" + identity_.name, "take-over", line,
                                    session::WallClockNs(), ControlLoop::Now());
  spdlog::info(line);
  take_over_steps_.End("begun", ControlLoop::Now());
  return blackout;
}

// Programs wait for the workers, so what programs do not need comes behind them. The files of the
// sysfs view are those of the predecessor until then.
void Gateway::LetWorkersAct() {
  data_path_.UnparkWorkers();
  sessions()->SetConnectionsResting(false);
  sessions()->attach().SetWatching(true);
  sessions()->attach().SetAccepting(true);
  metrics_server_.SetAccepting(true);
  grpc_server_.SetAccepting(true);
  spdlog::info("take-over: {}", take_over_steps_.Line());
  if (Status status = StartSysfs(); !status.ok()) spdlog::warn("sysfs view: {}", status.text());
}

}  // namespace rocegw::daemon
