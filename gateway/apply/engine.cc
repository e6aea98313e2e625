// SPDX-License-Identifier: Apache-2.0
#include "gateway/apply/engine.h"

#include <algorithm>
#include <set>
#include <utility>

#include "gateway/apply/state_file.h"

namespace rocegw::apply {

using types::v1::ConfigObject;
using types::v1::Push;
using types::v1::PushReport;
using types::v1::PushStatus;
using types::v1::Rejection;

namespace {

constexpr char kStatic[] = "static";

bool IsRemoval(const ConfigObject& object) { return object.value_case() == ConfigObject::kRemoved; }

// Returns an object's rank in the order of creation; removals use the reverse order.
int RankOf(const ConfigObject& object) { return object.value_case(); }

}  // namespace

// State that a push would lead to, and its rejected changes.
struct Engine::Plan {
  std::vector<ConfigObject> changes;  // accepted changes, in the order of the push
  Objects before;
  Objects after;
  Rejections rejections;

  void Tell(const std::string& name, const Wrong& wrong) {
    Rejection& rejection = rejections[name];
    rejection.set_object(name);
    rejection.set_reason(wrong.reason);
    rejection.set_message(wrong.text);
  }

  void Reject(size_t change, const Wrong& wrong) {
    const std::string name = changes[change].name();
    Tell(name, wrong);
    const auto old = before.find(name);
    if (old == before.end()) {
      after.erase(name);
    } else {
      after[name] = old->second;
    }
    changes.erase(changes.begin() + static_cast<ptrdiff_t>(change));
  }
};

Engine::Engine(Facts facts, Target& target, std::function<int64_t()> wall_ns)
    : facts_(std::move(facts)), target_(target), wall_ns_(std::move(wall_ns)) {}

Status Engine::Start(const std::vector<ConfigObject>& objects) {
  gateway::v1::GetConfigResponse state;
  auto known = ReadStateFile(facts_.state_file, state);
  if (known.ok() && *known) {
    source_ = state.source();
    revision_ = state.applied_revision();
    restoring_ = true;
    Carry({state.objects().begin(), state.objects().end()}, true);
    restoring_ = false;
    // Earlier rejections are not part of the state, but still hold.
    for (const Rejection& rejection : state.rejections())
      rejections_.try_emplace(rejection.object(), rejection);
    return OkStatus();
  }
  Carry(objects, true);
  return known.status();
}

PushReport Engine::Report(const Push& push, PushStatus status) const {
  PushReport report;
  report.set_nonce(push.nonce());
  report.set_status(status);
  if (source_ != kStatic) report.set_store_uuid(source_);
  report.set_applied_revision(revision_);
  for (const auto& [name, rejection] : rejections_) *report.add_rejections() = rejection;
  const int64_t now = wall_ns_();
  report.mutable_apply_time()->set_seconds(now / 1000000000);
  report.mutable_apply_time()->set_nanos(static_cast<int32_t>(now % 1000000000));
  return report;
}

PushReport Engine::Apply(const Push& push) {
  const bool followed = source_ != kStatic;
  const bool other = followed && push.store_uuid() != source_;
  const bool older = followed && !other && push.revision() < revision_;
  if ((other || older) && !push.adopt()) {
    staged_.reset();
    return Report(push, types::v1::UNADOPTED);
  }
  // Parts belong together if they are of one push.
  if (staged_ && (staged_->store_uuid() != push.store_uuid() || staged_->full() != push.full() ||
                  staged_->revision() != push.revision() || staged_->nonce() != push.nonce())) {
    staged_.reset();
  }
  if (push.full()) {
    // Parts from before a restart of this gateway are lost; without this check the last part alone
    // would count as the whole state. The gateway's own object is always the first.
    const bool begins = push.objects_size() > 0 && push.objects(0).has_gateway();
    if (!begins && !staged_) return Report(push, types::v1::NEED_FULL);
    if (begins) staged_.reset();
  } else if (push.store_uuid() != source_ || push.base_revision() != revision_) {
    staged_.reset();
    return Report(push, types::v1::NEED_FULL);
  }
  if (!Stage(push)) return Report(push, types::v1::APPLIED);
  const Push whole = *std::exchange(staged_, std::nullopt);
  Carry({whole.objects().begin(), whole.objects().end()}, push.full());
  source_ = push.store_uuid();
  revision_ = push.revision();
  Write();
  return Report(push, types::v1::APPLIED);
}

bool Engine::Stage(const Push& push) {
  if (!staged_) {
    staged_ = push;
  } else {
    staged_->mutable_objects()->MergeFrom(push.objects());
  }
  return !push.more();
}

void Engine::Carry(std::vector<ConfigObject> changes, bool full) {
  Plan plan;
  plan.before = objects_;
  plan.after = objects_;
  if (full) {
    std::map<std::string, const ConfigObject*> named;
    for (const ConfigObject& object : changes) named[object.name()] = &object;
    for (const auto& [name, object] : objects_) {
      if (named.contains(name)) continue;
      ConfigObject removal;
      removal.set_name(name);
      removal.set_removed(true);
      changes.push_back(removal);
    }
    rejections_.clear();
    waiting_.clear();
  }
  for (const ConfigObject& object : changes) {
    rejections_.erase(object.name());
    waiting_.erase(object.name());
  }
  plan.changes = std::move(changes);
  for (size_t i = 0; i < plan.changes.size();) {
    const ConfigObject object = plan.changes[i];
    auto wrong = CheckObject(object);
    if (!wrong && object.has_gateway() && object.name() != facts_.gateway)
      wrong = Wrong{kInvalid, "this is " + facts_.gateway};
    if (wrong) {
      plan.Reject(i, *wrong);
      continue;
    }
    if (IsRemoval(object)) {
      plan.after.erase(object.name());
    } else {
      plan.after[object.name()] = object;
    }
    ++i;
  }
  CheckReferences(plan);
  CheckCommitments(plan);
  MakeSockets(plan);
  CarryOut(plan);
}

size_t Engine::Retry() {
  if (waiting_.empty()) return 0;
  std::vector<ConfigObject> changes;
  for (const auto& [name, object] : waiting_) changes.push_back(object);
  const size_t waited = changes.size();
  Carry(std::move(changes), false);
  if (waiting_.size() < waited) Write();
  return waited - waiting_.size();
}

void Engine::MakeSockets(Plan& plan) {
  std::set<std::string> made;
  for (size_t i = 0; i < plan.changes.size();) {
    const ConfigObject object = plan.changes[i];
    if (!object.has_pool() || made.contains(object.name())) {
      ++i;
      continue;
    }
    const auto wrong = target_.MakeSockets(PoolOf(object.pool(), plan.after));
    if (!wrong) {
      made.insert(object.name());
      ++i;
      continue;
    }
    waiting_[object.name()] = object;
    if (restoring_) {
      // The pool existed before: it runs with some of its sockets rather than not at all.
      plan.Tell(object.name(), *wrong);
      ++i;
      continue;
    }
    plan.Reject(i, *wrong);
    // Objects that use the rejected change are checked again.
    CheckReferences(plan);
    CheckCommitments(plan);
    i = 0;
  }
  for (const ConfigObject& object : plan.changes) made.erase(object.name());
  for (const std::string& name : made) {
    const auto old = plan.before.find(name);
    if (old == plan.before.end()) {
      target_.DropSockets(name);
    } else {
      target_.SetPool(PoolOf(old->second.pool(), plan.before));
    }
  }
}

void Engine::CheckReferences(Plan& plan) const {
  // A rejection can remove what another object needs: repeats until nothing changes.
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < plan.changes.size(); ++i) {
      const ConfigObject& object = plan.changes[i];
      std::optional<Wrong> wrong;
      if (object.has_pool()) {
        const types::v1::PoolSpec& spec = object.pool().spec();
        const std::string tenant = tenant::TenantOf(object.name());
        if (!plan.after.contains(tenant)) {
          wrong = Wrong{kMissingTenant, tenant + " is not there"};
        } else if (!spec.cc_policy().empty() && !plan.after.contains(spec.cc_policy())) {
          wrong = Wrong{kMissingCcPolicy, spec.cc_policy() + " is not there"};
        } else {
          wrong = CheckAddresses(plan, i);
          if (!wrong) wrong = target_.CheckPool(PoolOf(object.pool(), plan.after));
          // The address was here when the pool was accepted, and may come back.
          if (wrong && restoring_ && wrong->reason == kAddressNotHere) wrong.reset();
        }
      } else if (IsRemoval(object)) {
        for (const auto& [name, other] : plan.after) {
          if (!other.has_pool()) continue;
          if (tenant::TenantOf(name) == object.name() ||
              other.pool().spec().cc_policy() == object.name()) {
            wrong = Wrong{kInUse, name + " needs it"};
          }
        }
      }
      if (!wrong) continue;
      plan.Reject(i, *wrong);
      again = true;
      break;
    }
  }
}

std::optional<Wrong> Engine::CheckAddresses(const Plan& plan, size_t change) const {
  const ConfigObject& object = plan.changes[change];
  for (const std::string& address : object.pool().spec().addresses()) {
    for (const auto& [name, other] : plan.after) {
      if (name == object.name() || !other.has_pool()) continue;
      if (!std::ranges::count(other.pool().spec().addresses(), address)) continue;
      // If two objects of one push conflict, the first wins.
      const auto later = std::ranges::find(plan.changes.begin() + static_cast<ptrdiff_t>(change),
                                           plan.changes.end(), name, &ConfigObject::name);
      if (later != plan.changes.end()) continue;
      Wrong wrong{kAddressTaken, "spec.addresses: "};
      wrong.text.append(address).append(" belongs to ").append(name);
      return wrong;
    }
  }
  return std::nullopt;
}

void Engine::CheckCommitments(Plan& plan) const {
  const auto committed = [](const Objects& objects, const std::string& name) {
    const auto found = objects.find(name);
    if (found == objects.end()) return tenant::Amounts();
    if (found->second.has_pool()) return ReadPool(found->second.pool()).quota.committed;
    if (found->second.has_tenant()) return ReadTenant(found->second.tenant()).quota.committed;
    return tenant::Amounts();
  };
  while (true) {
    tenant::Commitments sums;
    sums.SetCapacity(facts_.capacity);
    for (const auto& [name, object] : plan.after) {
      if (object.has_gateway())
        sums.SetCapacity(ReadLimits(object.gateway().capacity(), facts_.capacity));
      if (object.has_tenant()) sums.SetTenant(name, ReadTenant(object.tenant()).quota);
      if (object.has_pool()) sums.SetPool(name, ReadPool(object.pool()).quota.committed);
    }
    const auto over = sums.Check();
    if (!over) return;
    // Last change that raised the sum, else one that lowered the limit; else the sum was too large
    // before, and no change of this push is at fault.
    std::optional<size_t> culprit;
    for (size_t i = 0; i < plan.changes.size(); ++i) {
      const std::string& name = plan.changes[i].name();
      const bool concerned =
          over->tenant.empty() || name == over->tenant || tenant::TenantOf(name) == over->tenant;
      if (!concerned) continue;
      const bool more = LimitOf(committed(plan.after, name), over->limit) >
                        LimitOf(committed(plan.before, name), over->limit);
      const bool bound =
          over->tenant.empty() ? plan.changes[i].has_gateway() : name == over->tenant;
      if (more || (bound && !culprit)) culprit = i;
    }
    if (!culprit) return;
    const std::string whose =
        over->tenant.empty() ? "the capacity of " + facts_.gateway : "the peak of " + over->tenant;
    std::string why = "brings the committed " + std::string(tenant::LimitName(over->limit)) +
                      " to " + std::to_string(over->sum) + "; " + whose + " is " +
                      std::to_string(over->bound);
    if (plan.changes[*culprit].pool().spec().ready_qps() != 0)
      why += " (what spec.ready_qps keeps ready counts as committed)";
    plan.Reject(*culprit, {kNoCapacity, why});
    CheckReferences(plan);
  }
}

tenant::PoolSettings Engine::PoolOf(const types::v1::PoolConfig& config,
                                    const Objects& objects) const {
  tenant::PoolSettings settings = ReadPool(config);
  const auto policy = objects.find(config.spec().cc_policy());
  if (policy != objects.end()) settings.window_bytes = policy->second.cc_policy().window_bytes();
  return settings;
}

void Engine::CarryOut(const Plan& plan) {
  objects_ = plan.after;
  for (const auto& [name, rejection] : plan.rejections) rejections_[name] = rejection;
  const auto changed = [&](const ConfigObject& object) {
    const auto old = plan.before.find(object.name());
    return old == plan.before.end() || RankOf(old->second) != RankOf(object) ||
           old->second.SerializeAsString() != object.SerializeAsString();
  };
  std::vector<const ConfigObject*> order;
  for (const ConfigObject& object : plan.changes) {
    if (IsRemoval(object) || changed(object)) order.push_back(&object);
  }
  std::ranges::stable_sort(order, {}, [](const ConfigObject* object) { return RankOf(*object); });
  for (const ConfigObject* object : order) {
    if (object->has_gateway()) {
      target_.SetGateway(ReadGateway(object->gateway()),
                         ReadLimits(object->gateway().capacity(), facts_.capacity));
    } else if (object->has_cc_policy()) {
      // Unchanged pools also use it.
      for (const auto& [name, other] : objects_) {
        if (!other.has_pool() || other.pool().spec().cc_policy() != object->name()) continue;
        if (plan.before.contains(name) && !changed(other))
          target_.SetPool(PoolOf(other.pool(), objects_));
      }
    } else if (object->has_tenant()) {
      target_.SetTenant(ReadTenant(object->tenant()));
    } else if (object->has_pool()) {
      target_.SetPool(PoolOf(object->pool(), objects_));
    } else if (object->has_peer()) {
      target_.SetPeer(object->name(), ReadPeer(object->peer()));
    }
  }
  // Pools before their tenants.
  for (const bool tenants : {false, true}) {
    for (const ConfigObject* object : order) {
      const auto old = plan.before.find(object->name());
      if (!IsRemoval(*object) || old == plan.before.end()) continue;
      if (!tenants && old->second.has_pool()) target_.RemovePool(object->name());
      if (tenants && old->second.has_tenant()) target_.RemoveTenant(object->name());
      if (tenants && old->second.has_peer()) target_.SetPeer(object->name(), {});
      if (tenants && old->second.has_gateway()) target_.SetGateway({}, facts_.capacity);
    }
  }
}

void Engine::Describe(gateway::v1::GetConfigResponse& out) const {
  out.set_source(source_);
  out.set_applied_revision(revision_);
  for (const auto& [name, object] : objects_) *out.add_objects() = object;
  for (const auto& [name, rejection] : rejections_) *out.add_rejections() = rejection;
}

void Engine::Write() {
  if (facts_.state_file.empty()) return;
  gateway::v1::GetConfigResponse state;
  Describe(state);
  const Status written = WriteStateFile(facts_.state_file, state);
  write_problem_ = written.text();
}

}  // namespace rocegw::apply
