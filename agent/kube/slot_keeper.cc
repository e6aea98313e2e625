// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/slot_keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "agent/kube/pods/pod_cgroup.h"

namespace rocegw::agent {
namespace {

// With SlotKeeper's usual pause about ten seconds: enough for a gateway restart.
constexpr int kAttempts = 200;

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

SlotKeeper::SlotKeeper(ControlLoop& loop, GatewayPort& gateway, std::string pod_logs,
                       std::function<void()> changed, Duration retry)
    : loop_(loop),
      gateway_(gateway),
      pod_logs_(std::move(pod_logs)),
      changed_(std::move(changed)),
      retry_(retry) {}

SlotKeeper::~SlotKeeper() { *alive_ = false; }

void SlotKeeper::SetOffers(std::vector<PoolOffer> offers, int numa_node) {
  std::map<std::string, PoolOffer> fresh;
  for (PoolOffer& offer : offers) fresh.emplace(offer.resource, std::move(offer));
  if (fresh == offers_ && numa_node == numa_node_) return;
  offers_ = std::move(fresh);
  numa_node_ = numa_node;
  for (const auto& [resource, offer] : offers_)
    if (!offer.by_claim) resources_.insert(resource);
  changed_();
}

void SlotKeeper::SetGatewayHealthy(bool healthy) {
  if (std::exchange(healthy_, healthy) != healthy) changed_();
}

Assignments SlotKeeper::WithClaims(const Assignments& told) const {
  Assignments merged = told;
  for (const auto& [key, holder] : claims_) {
    PodName pod = holder.pod;
    // Only kubelet knows the container's slots.
    const auto listed = told.find({kClaimedSlot, key.second});
    pod.several_slots =
        listed != told.end() && std::ranges::any_of(listed->second, &PodName::several_slots);
    merged[key] = {pod};
  }
  return merged;
}

void SlotKeeper::TakeAssignments(const Assignments& told) {
  const Assignments assignments = WithClaims(told);
  for (const auto& [key, pod] : assignments) {
    if (resources_.contains(key.first) || claims_.contains(key)) holdings_.try_emplace(key);
  }
  for (auto at = holdings_.begin(); at != holdings_.end();) {
    auto& [key, holding] = *at;
    const auto now = assignments.find(key);
    const std::vector<PodName> none;
    const std::vector<PodName>& holders = now == assignments.end() ? none : now->second;
    const bool held = holding.pod != PodName{} || !holding.pod_uid.empty();
    const bool stays =
        holding.pod == PodName{} ? !holders.empty() : std::ranges::count(holders, holding.pod) != 0;
    if (!stays || holding.pod == PodName{})
      holding.pod = holders.size() == 1 ? holders.front() : PodName{};
    // Programs of the former holder must not stay.
    if (held && !stays) {
      holding.pod_uid.clear();
      if (!holding.clearing) ClearAfter(key);
    }
    if (holders.empty() && !holding.clearing) {
      at = holdings_.erase(at);
    } else {
      ++at;
    }
  }
}

void SlotKeeper::ClearAfter(const Key& key) {
  const auto slots = FindAll(key.first, {key.second});
  // Without its socket no program can use the slot.
  if (!slots.ok()) return;
  holdings_[key].clearing = true;
  changed_();
  Clear(slots.value().front().socket, Next::kNobody, kAttempts, [this, key](const Status& status) {
    const auto known = holdings_.find(key);
    if (known == holdings_.end()) return;
    known->second.clearing = false;
    if (!status.ok()) {
      spdlog::warn("slot {} of {} is not cleared yet: {}", key.second, key.first, status.text());
      return ClearAfter(key);
    }
    changed_();
  });
}

SlotKeeper::Judgement SlotKeeper::Judge(const gateway::v1::HeldAttach& attach,
                                        const Assignments& told,
                                        const std::optional<PodIdentity>& identity) {
  const auto refused = [](std::string reason) { return Judgement{{false, std::move(reason)}, {}}; };
  const std::string uid = PodUidOf(attach.cgroup());
  if (uid.empty()) return refused("it is in no pod");
  const auto offer = std::ranges::find(offers_, attach.pool(),
                                       [](const auto& entry) { return entry.second.pool; });
  if (offer == offers_.end())
    return refused(attach.pool() + " is not for pods (its attach.service_accounts name nobody)");
  const auto& slots = offer->second.slots;
  const auto slot = std::ranges::find(slots, attach.socket(), &Slot::socket);
  if (slot == slots.end())
    return refused("it came by a socket that is no slot of " + attach.pool());
  TakeAssignments(told);
  const Assignments assignments = WithClaims(told);
  const Key key{offer->first, slot->id};
  const auto holder = assignments.find(key);
  if (holder == assignments.end())
    return refused(
        (offer->second.by_claim ? "no claim of a pod has slot " : "kubelet has given slot ") +
        slot->id + (offer->second.by_claim ? "" : " to no pod"));
  Holding& holding = holdings_[key];
  if (holding.clearing) return refused("slot " + slot->id + " is still being cleared");
  std::vector<PodName> candidates;
  const auto claim = claims_.find(key);
  for (const PodName& pod : holder->second) {
    // A claim names its pod's uid.
    if (claim != claims_.end() ? claim->second.pod_uid == uid : !LogsNameAnother(pod, uid))
      candidates.push_back(pod);
  }
  const bool stranger = !holding.pod_uid.empty() && holding.pod_uid != uid;
  if (stranger || candidates.empty())
    return refused("slot " + slot->id + " belongs to another pod");
  // Without logs a finished pod and its successor are indistinguishable: the pool then admits both.
  for (const PodName& pod : candidates) {
    const std::string name = "pod " + pod.name_space + "/" + pod.name;
    const PodAdmission admission = Admits(offer->second.pods, pod, identity);
    if (admission == PodAdmission::kUnknown && candidates.size() > 1) {
      return refused(name +
                     ": another pod had the slot before, and without kubernetes.pod_log_dir "
                     "they cannot be told apart");
    }
    if (admission == PodAdmission::kUnknown)
      return {{false, name + ": its service account is not known"}, pod};
    if (admission == PodAdmission::kRefused) {
      std::string reason =
          name + ": " + attach.pool() + " is for " + RulesText(offer->second.pods) + " only";
      if (identity) reason += ", its account is " + identity->service_account;
      return refused(std::move(reason));
    }
    if (pod.several_slots) {
      return refused(name +
                     ": its container asks for more than one slot of rocegw's pools, and can "
                     "have one");
    }
  }
  if (candidates.size() == 1) holding.pod = candidates.front();
  holding.pod_uid = uid;
  Judgement admitted{{true, ""}, {}};
  if (claim != claims_.end()) {
    // With each verdict, since a gateway that starts anew knows no claims.
    admitted.verdict.limits.set_qps(claim->second.amounts.qps);
    admitted.verdict.limits.set_bytes_per_second(claim->second.amounts.bytes_per_second);
  }
  return admitted;
}

// kubelet gives no uids, but creates a directory for each pod's logs that has the uid in its name.
bool SlotKeeper::LogsNameAnother(const PodName& pod, const std::string& pod_uid) const {
  if (pod_logs_.empty()) return false;
  std::error_code error;
  const std::filesystem::path mine(pod.name_space + "_" + pod.name + "_" + pod_uid);
  return !std::filesystem::is_directory(pod_logs_ / mine, error);
}

std::vector<std::string> SlotKeeper::Resources() const {
  return {resources_.begin(), resources_.end()};
}

std::vector<OfferedSlot> SlotKeeper::Slots(const std::string& resource) const {
  std::vector<OfferedSlot> result;
  const auto offer = offers_.find(resource);
  if (offer == offers_.end()) return result;
  for (const Slot& slot : offer->second.slots) {
    const auto holding = holdings_.find({resource, slot.id});
    const bool clearing = holding != holdings_.end() && holding->second.clearing;
    result.push_back({slot.id, healthy_ && !clearing, numa_node_});
  }
  return result;
}

std::vector<PoolOffer> SlotKeeper::ClaimPools() const {
  std::vector<PoolOffer> pools;
  for (const auto& [resource, offer] : offers_)
    if (offer.by_claim) pools.push_back(offer);
  return pools;
}

void SlotKeeper::Claim(const std::string& resource, const std::string& id, const PodName& pod,
                       const std::string& pod_uid, const SlotAmounts& amounts) {
  claims_[{resource, id}] = {pod, pod_uid, amounts};
}

void SlotKeeper::Unclaim(const std::string& resource, const std::string& id) {
  const Key key{resource, id};
  if (claims_.erase(key) == 0) return;
  holdings_.erase(key);
  ClearAfter(key);
}

StatusOr<Slot> SlotKeeper::Find(const std::string& resource, const std::string& id) const {
  auto found = FindAll(resource, {id});
  if (!found.ok()) return found.status();
  return found.value().front();
}

StatusOr<std::vector<Slot>> SlotKeeper::FindAll(const std::string& resource,
                                                const std::vector<std::string>& ids) const {
  std::vector<Slot> found;
  const auto offer = offers_.find(resource);
  for (const std::string& id : ids) {
    if (offer == offers_.end()) break;
    const auto slot = std::ranges::find(offer->second.slots, id, &Slot::id);
    if (slot != offer->second.slots.end()) found.push_back(*slot);
  }
  if (found.size() != ids.size())
    return Status(ENOENT, resource + " has no slot " + Joined(ids) +
                              " on this node any more: its pool was removed, or removed and made "
                              "again. Delete the pod, a new one gets a slot of today's pool");
  return found;
}

void SlotKeeper::Clear(const std::string& socket, Next next, int attempts,
                       std::function<void(Status)> done) {
  gateway_.ClearSocket(
      socket, next == Next::kProgram,
      [this, socket, next, attempts, done = std::move(done),
       alive = alive_](const StatusOr<uint32_t>& remaining) {
        if (!*alive) return;
        if (remaining.ok() && remaining.value() == 0) return done(OkStatus());
        if (attempts == 0) {
          return done(remaining.ok() ? Status(EBUSY, "programs of before are still ending")
                                     : remaining.status());
        }
        (void)loop_.At(ControlLoop::Now() + retry_, [this, socket, next, attempts, done, alive] {
          if (*alive) Clear(socket, next, attempts - 1, done);
        });
      });
}

void SlotKeeper::ClearAll(std::shared_ptr<std::vector<Slot>> slots, size_t at, Next next,
                          Prepared done) {
  if (at == slots->size()) return done(*slots);
  Clear((*slots)[at].socket, next, kAttempts,
        [this, slots, at, next, done = std::move(done)](const Status& status) {
          if (!status.ok()) return done(status);
          ClearAll(slots, at + 1, next, done);
        });
}

void SlotKeeper::ClearFor(const std::string& resource, const std::vector<std::string>& ids,
                          Next next, Prepared done) {
  auto slots = FindAll(resource, ids);
  if (!slots.ok()) return done(slots.status());
  ClearAll(std::make_shared<std::vector<Slot>>(std::move(*slots)), 0, next, std::move(done));
}

void SlotKeeper::Prepare(const std::string& resource, const std::vector<std::string>& ids,
                         Prepared done) {
  assigned_();
  ClearFor(resource, ids, Next::kProgram, std::move(done));
}

void SlotKeeper::Allocate(const std::string& resource, const std::vector<std::string>& ids,
                          Prepared done) {
  assigned_();
  // The new holder gets nothing of the earlier one.
  for (const std::string& id : ids) holdings_.erase({resource, id});
  // Images are pulled before its containers start, so no program is expected yet.
  ClearFor(resource, ids, Next::kNobody, std::move(done));
}

}  // namespace rocegw::agent
