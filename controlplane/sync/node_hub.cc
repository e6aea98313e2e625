// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/node_hub.h"

#include <google/protobuf/util/time_util.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/controllers/gateway_config.h"
#include "controlplane/model/plain_text.h"
#include "controlplane/model/serialized.h"
#include "controlplane/model/timestamp.h"

namespace rocegw::sync {
namespace {

using google::protobuf::util::TimeUtil;

std::string SerializedState(const types::v1::GatewayState& state) {
  types::v1::Gateway gateway;
  *gateway.mutable_status() = state;
  return model::Serialized(gateway);
}

// Adds a condition that does not hold.
void AddProblem(const char* type, const char* reason, const std::string& message,
                types::v1::GatewayState& state) {
  types::v1::Condition& condition = *state.add_conditions();
  condition.set_type(type);
  condition.set_reason(reason);
  condition.set_message(message);
}

const char* ReasonOf(controllers::AddressRefusal why) {
  switch (why) {
    case controllers::AddressRefusal::kTaken:
      return "AddressTaken";
    case controllers::AddressRefusal::kTooMany:
      return "TooManyAddresses";
    case controllers::AddressRefusal::kMalformed:
      break;
  }
  return "AddressMalformed";
}

constexpr size_t kLongestVersion = 128;
// Interval of warnings per node, which may claim other names repeatedly.
constexpr std::chrono::seconds kBetweenWarnings(10);

// Truncates a node's texts before they are stored.
types::v1::DrainProgress Bounded(const types::v1::DrainProgress& told) {
  constexpr int kMostHolders = 16;
  types::v1::DrainProgress progress = told;
  progress.clear_holders();
  for (int i = 0; i < std::min(told.holders_size(), kMostHolders); ++i)
    progress.add_holders(model::PlainText(told.holders(i), 256));
  return progress;
}

types::v1::TakeOverSummary Bounded(const types::v1::TakeOverSummary& told) {
  constexpr size_t kMostReasons = 32;
  constexpr size_t kLongestReason = 32;
  types::v1::TakeOverSummary summary = told;
  summary.set_from_version(model::PlainText(told.from_version(), kLongestVersion));
  summary.clear_refusals();
  for (const auto& [reason, times] : told.refusals()) {
    if (summary.refusals().size() == kMostReasons) break;
    (*summary.mutable_refusals())[model::PlainText(reason, kLongestReason)] = times;
  }
  return summary;
}

// Returns the first addresses, as many as can be granted and refused, each as long as an address.
google::protobuf::RepeatedPtrField<std::string> Bounded(
    const google::protobuf::RepeatedPtrField<std::string>& told) {
  constexpr int kMost = 2 * controllers::kMostAddresses;
  constexpr size_t kLongest = 64;
  google::protobuf::RepeatedPtrField<std::string> addresses;
  for (int i = 0; i < std::min(told.size(), kMost); ++i)
    *addresses.Add() = model::PlainText(told.Get(i), kLongest);
  return addresses;
}

// Keeps only existing pools of this gateway, each once: a node may not report about those of other
// hosts.
UsageBook::Pools OwnPools(const Fleet& fleet, const std::string& gateway,
                          const UsageBook::Pools& told) {
  UsageBook::Pools own;
  const auto there = fleet.placement.PoolsOn(gateway);
  std::set<std::string> seen;
  for (const types::v1::PoolTotals& pool : told) {
    if (there.contains(pool.pool()) && seen.insert(pool.pool()).second) *own.Add() = pool;
  }
  return own;
}

}  // namespace

NodeHub::NodeHub(FleetFollower& follower, StatusWriter& statuses, std::string store_uuid,
                 const NodeHubOptions& options)
    : follower_(follower),
      statuses_(statuses),
      store_uuid_(std::move(store_uuid)),
      controller_(options.controller),
      pace_(options.pace) {
  listener_ = follower_.Listen(
      [this](const Fleet& fleet, const FleetChange& change) { OnChange(fleet, change); });
  follower_.Read([&](const Fleet& fleet) {
    const std::lock_guard lock(mutex_);
    sent_ = std::max(sent_, fleet.view.revision);
    gateways_ = static_cast<uint32_t>(fleet.view.gateways.size());
  });
  thread_ = std::thread([this] { Run(); });
}

NodeHub::~NodeHub() {
  follower_.Unlisten(listener_);
  CloseAll(StreamEnd::kClosing);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

NodeHub::StreamId NodeHub::Attach(const fleet::v1::Hello& hello, std::shared_ptr<NodeStream> stream,
                                  int64_t certificate_expires) {
  const std::string& gateway = hello.gateway();
  return follower_.Read([&](const Fleet& fleet) {
    const std::lock_guard lock(mutex_);
    types::v1::GatewayState state;
    if (const auto known = fleet.view.gateways.find(gateway); known != fleet.view.gateways.end())
      state = known->second.object.status();
    if (const auto old = nodes_.find(gateway); old != nodes_.end()) {
      old->second.stream->Close(StreamEnd::kSuperseded);
      state = old->second.state;
      nodes_.erase(old);
    }
    const StreamId id = ++last_id_;
    Node& node = nodes_
                     .emplace(std::piecewise_construct, std::forward_as_tuple(gateway),
                              std::forward_as_tuple(
                                  id, std::move(stream),
                                  NodeSession(gateway, store_uuid_, hello, fleet.view.revision)))
                     .first->second;
    node.state = std::move(state);
    node.state.set_connected(true);
    node.state.set_controller(controller_);
    node.state.set_agent_version(model::PlainText(hello.agent_version(), kLongestVersion));
    if (certificate_expires != 0) {
      *node.state.mutable_certificate_expire_time() =
          TimeUtil::SecondsToTimestamp(certificate_expires);
    }
    *node.state.mutable_last_seen_time() = model::Now();
    WriteState(gateway, node);
    WantPush(gateway);
    return id;
  });
}

NodeHub::Node* NodeHub::Find(const std::string& gateway, StreamId id) {
  const auto at = nodes_.find(gateway);
  return at == nodes_.end() || at->second.id != id ? nullptr : &at->second;
}

void NodeHub::OnReport(const std::string& gateway, StreamId id,
                       const types::v1::PushReport& report) {
  const std::lock_guard lock(mutex_);
  Node* const node = Find(gateway, id);
  if (node == nullptr) return;
  if (!node->session.OnReport(report)) return node->stream->Close(StreamEnd::kProtocol);
  *node->state.mutable_last_seen_time() = model::Now();
  WriteState(gateway, *node);
  WantPush(gateway);
}

void NodeHub::OnHeartbeat(const std::string& gateway, StreamId id,
                          const fleet::v1::Heartbeat& heartbeat) {
  // Bounded before the locks, which all nodes share.
  auto addresses = Bounded(heartbeat.addresses());
  follower_.Read([&](const Fleet& fleet) {
    const std::lock_guard lock(mutex_);
    Node* const node = Find(gateway, id);
    if (node == nullptr) return;
    types::v1::GatewayState& state = node->state;
    *state.mutable_last_seen_time() = model::Now();
    state.set_gateway_version(model::PlainText(heartbeat.gateway_version(), kLongestVersion));
    if (heartbeat.gateway_connected()) {
      node->named_addresses.Swap(&addresses);
      Judge(fleet, gateway, *node);
      if (heartbeat.has_capacity()) *state.mutable_capacity() = heartbeat.capacity();
      state.clear_drain();
      if (heartbeat.has_drain()) *state.mutable_drain() = Bounded(heartbeat.drain());
      state.clear_take_overs();
      if (heartbeat.has_take_overs()) *state.mutable_take_overs() = Bounded(heartbeat.take_overs());
      usage_.Set(gateway, OwnPools(fleet, gateway, heartbeat.pools()));
    }
    node->gateway_reachable = heartbeat.gateway_connected();
    if (node->gateway_reachable && node->session.RetryRejected(PushPace::Clock::now()))
      WantPush(gateway);
    WriteState(gateway, *node);
  });
}

void NodeHub::Judge(const Fleet& fleet, const std::string& gateway, Node& node) {
  controllers::AddressClaims claims =
      controllers::JudgeAddresses(fleet.view, gateway, node.named_addresses);
  for (const controllers::RefusedAddress& refused : claims.refused) {
    if (std::ranges::count(node.refused_addresses, refused) != 0) continue;
    ++refused_addresses_[static_cast<size_t>(refused.why)];
    const auto now = PushPace::Clock::now();
    if (now < node.warn_at) continue;
    node.warn_at = now + kBetweenWarnings;
    spdlog::warn("{} names an address that is refused: {}", gateway, controllers::ToText(refused));
  }
  node.refused_addresses = std::move(claims.refused);
  node.state.mutable_addresses()->Assign(claims.granted.begin(), claims.granted.end());
}

void NodeHub::JudgeAnew(const Fleet& fleet, const FleetChange& change) {
  const bool moved =
      change.everything || std::ranges::any_of(change.changed, &controllers::Changed::addresses);
  if (!moved) return;
  const auto is_shared = [&](const std::string& address) {
    const auto at = fleet.view.gateways_at.find(address);
    return at != fleet.view.gateways_at.end() && at->second.size() > 1;
  };
  for (auto& [name, node] : nodes_) {
    // A node that has not reported addresses here yet keeps those in the store.
    if (node.named_addresses.empty()) continue;
    if (node.refused_addresses.empty() && std::ranges::none_of(node.state.addresses(), is_shared)) {
      continue;
    }
    Judge(fleet, name, node);
    WriteState(name, node);
  }
}

void NodeHub::Detach(const std::string& gateway, StreamId id) {
  const std::lock_guard lock(mutex_);
  Node* const node = Find(gateway, id);
  if (node == nullptr) return;
  node->state.set_connected(false);
  WriteState(gateway, *node);
  nodes_.erase(gateway);
  ready_.erase(gateway);
  usage_.Remove(gateway);
}

void NodeHub::CloseAll(StreamEnd why) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, node] : nodes_) node.stream->Close(why);
}

uint32_t NodeHub::Adopt(const std::string& gateway) {
  const std::lock_guard lock(mutex_);
  uint32_t adopted = 0;
  for (auto& [name, node] : nodes_) {
    const bool meant = gateway == name || gateway == "gateways/-";
    if (!meant || !node.session.unadopted()) continue;
    node.session.Adopt(sent_);
    WantPush(name);
    ++adopted;
  }
  return adopted;
}

// A change of only the observation time is not written to the store.
void NodeHub::WriteState(const std::string& gateway, Node& node) {
  types::v1::GatewayState& state = node.state;
  state.set_desired_revision(node.session.desired_revision());
  state.set_applied_revision(node.session.applied_revision());
  state.clear_rejections();
  for (const types::v1::Rejection& rejection : node.session.rejections())
    *state.add_rejections() = rejection;
  state.clear_conditions();
  if (!node.gateway_reachable) {
    AddProblem("GatewayReachable", "AgentCannotReachIt",
               "the agent is connected, but its gateway daemon does not answer it", state);
  }
  if (node.session.unadopted()) {
    AddProblem("Adopted", "AnotherStore",
               "it follows another store and keeps what it has; if this one is the fleet's now: "
               "rocegwctl fleet adopt",
               state);
  }
  if (!node.refused_addresses.empty()) {
    std::string all;
    constexpr size_t kShown = 4;
    const size_t count = node.refused_addresses.size();
    for (size_t i = 0; i < std::min(count, kShown); ++i)
      all += (i == 0 ? "" : "; ") + controllers::ToText(node.refused_addresses[i]);
    if (count > kShown) all += "; and " + std::to_string(count - kShown) + " more";
    AddProblem("AddressesBelieved", ReasonOf(node.refused_addresses.front().why), all, state);
  }
  types::v1::GatewayState comparable = state;
  comparable.clear_last_seen_time();
  std::string bytes = SerializedState(comparable);
  if (bytes == node.written) return;
  node.written = std::move(bytes);
  statuses_.Set(model::NameOf(gateway), SerializedState(state));
}

void NodeHub::WantPush(const std::string& gateway) {
  ready_.insert(gateway);
  wake_.notify_all();
}

void NodeHub::OnChange(const Fleet& fleet, const FleetChange& change) {
  const store::Revision revision = fleet.view.revision;
  const controllers::Touches touches =
      change.everything
          ? controllers::Touches()
          : controllers::Touched(fleet.view, fleet.placement, change.changed, change.moves);
  const std::lock_guard lock(mutex_);
  gateways_ = static_cast<uint32_t>(fleet.view.gateways.size());
  if (change.everything) {
    for (auto& [name, node] : nodes_) {
      node.session.TouchAll(revision);
      WantPush(name);
    }
  }
  JudgeAnew(fleet, change);
  for (const controllers::Changed& changed : change.changed) {
    if (!changed.intent) KeepConnected(fleet, changed.name.Text());
  }
  for (const auto& [gateway, names] : touches) {
    const auto at = nodes_.find(gateway);
    if (at == nodes_.end()) continue;
    at->second.session.Touch(names, revision);
    WantPush(gateway);
  }
  sent_ = revision;
  wake_.notify_all();
}

// Corrects another controller's report that the gateway's stream is gone: that controller had an
// older stream, or took this controller for gone.
void NodeHub::KeepConnected(const Fleet& fleet, const std::string& name) {
  const auto at = nodes_.find(name);
  const auto known = fleet.view.gateways.find(name);
  if (at == nodes_.end() || known == fleet.view.gateways.end()) return;
  if (known->second.object.status().connected()) return;
  at->second.written.clear();
  WriteState(name, at->second);
}

void NodeHub::Push(const Fleet& fleet, const std::string& gateway, bool paid) {
  const std::lock_guard lock(mutex_);
  const auto at = nodes_.find(gateway);
  Node* const node = at == nodes_.end() ? nullptr : &at->second;
  if (node != nullptr && paid) node->in_line = false;
  if (node == nullptr || !node->session.has_next()) {
    // A pending answer triggers the next check; or the node is gone.
    if (paid) pace_.Return();
    return;
  }
  if (!paid && !node->session.next_is_whole()) {
    if (node->in_line) return;
    if (!line_.empty() || !pace_.Take(PushPace::Clock::now(), nodes_.size())) {
      node->in_line = true;
      line_.push_back(gateway);
      return;
    }
  }
  const store::Revision applied = node->session.applied_revision();
  for (types::v1::Push& part : node->session.NextPush(fleet)) {
    fleet::v1::SyncResponse message;
    message.mutable_push()->Swap(&part);
    node->stream->Send(message);
  }
  // The gateway ran everything when it connected.
  if (node->session.applied_revision() != applied) WriteState(gateway, *node);
}

void NodeHub::Run() {
  for (;;) {
    std::vector<std::string> paid;
    std::vector<std::string> gateways;
    {
      std::unique_lock lock(mutex_);
      const auto wanted = [this] {
        return stopping_ || !ready_.empty() ||
               (!waiting_.empty() && waiting_.begin()->first <= sent_);
      };
      if (line_.empty()) {
        wake_.wait(lock, wanted);
      } else {
        wake_.wait_until(lock, pace_.NextAt(), wanted);
      }
      if (stopping_) return;
      while (!line_.empty() && pace_.Take(PushPace::Clock::now(), nodes_.size())) {
        paid.push_back(std::move(line_.front()));
        line_.pop_front();
      }
      gateways.assign(ready_.begin(), ready_.end());
      ready_.clear();
    }
    for (const auto* some : {&paid, &gateways}) {
      for (const std::string& gateway : *some) {
        follower_.Read([&](const Fleet& fleet) { Push(fleet, gateway, some == &paid); });
      }
    }
    std::vector<std::function<void(FleetProgress)>> calls;
    FleetProgress progress;
    {
      const std::lock_guard lock(mutex_);
      if (!ready_.empty()) continue;
      const auto end = waiting_.upper_bound(sent_);
      for (auto at = waiting_.begin(); at != end; ++at) calls.push_back(std::move(at->second));
      waiting_.erase(waiting_.begin(), end);
      if (!calls.empty()) progress = Progress();
    }
    for (const auto& call : calls) call(progress);
  }
}

FleetProgress NodeHub::Progress() const {
  FleetProgress progress;
  progress.revision = sent_;
  progress.gateways = gateways_;
  for (const auto& [name, node] : nodes_) {
    ++progress.connected;
    progress.in_sync += node.session.in_sync() ? 1 : 0;
    progress.unadopted += node.session.unadopted() ? 1 : 0;
    progress.rejecting += node.session.rejections().empty() ? 0 : 1;
  }
  return progress;
}

void NodeHub::WhenSent(store::Revision revision, std::function<void(FleetProgress)> call) {
  const std::lock_guard lock(mutex_);
  waiting_.emplace(revision, std::move(call));
  wake_.notify_all();
}

}  // namespace rocegw::sync
