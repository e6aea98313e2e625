// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/dra/claim_preparer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "agent/kube/cdi_spec.h"
#include "agent/kube/dra/resource_slices.h"
#include "agent/kube/pods/pod_rules.h"

namespace rocegw::agent {

ClaimPreparer::ClaimPreparer(ControlLoop& loop, SlotAllocator& slots, kubeapi::ApiServer& api,
                             ClaimPreparerSettings settings, ClaimCounters& counters)
    : loop_(loop), slots_(slots), api_(api), settings_(std::move(settings)), counters_(counters) {}

Status ClaimPreparer::Load() {
  auto loaded = LoadPreparedClaims(settings_.checkpoint);
  if (!loaded.ok() && loaded.status().error() != ENOENT) return damaged_ = loaded.status();
  if (loaded.ok()) prepared_ = std::move(*loaded);
  for (const auto& [uid, claim] : prepared_) {
    for (const PreparedDevice& device : claim.devices)
      slots_.Claim(device.resource, device.slot, claim.pod, claim.pod_uid, device.amounts);
  }
  counters_.prepared = prepared_.size();
  RemoveOtherCdi();
  return OkStatus();
}

void ClaimPreparer::Prepare(const ClaimName& name, Prepared done) {
  if (!damaged_.ok()) return done(damaged_);
  if (const auto known = prepared_.find(name.uid); known != prepared_.end()) {
    // The runtime's directory is lost at a restart of the node; the checkpoint is not.
    const Status written = WriteCdi(known->second);
    return written.ok() ? done(known->second) : done(written);
  }
  PreparationPtr& preparation = preparing_[name.uid];
  if (preparation != nullptr) {
    preparation->waiting.push_back(std::move(done));
    return;
  }
  preparation = std::make_shared<Preparation>(Preparation{name, {}, {std::move(done)}});
  preparation->claim.claim = name.name;
  api_.Call({"GET", ClaimPath(name.name_space, name.name), "", ""},
            [&loop = loop_, this, preparation,
             alive = alive_](const StatusOr<kubeapi::ApiAnswer>& answer) {
              (void)loop.Post([this, preparation, alive, answer] {
                if (*alive) OnClaim(preparation, answer);
              });
            });
}

void ClaimPreparer::OnClaim(const PreparationPtr& preparation,
                            const StatusOr<kubeapi::ApiAnswer>& answer) {
  if (!answer.ok()) return End(preparation, answer.status());
  const auto allocated =
      ReadAllocatedClaim(answer.value().object, preparation->name.uid, settings_.node);
  if (!allocated.ok()) return End(preparation, allocated.status());
  if (Status chosen = Choose(allocated.value(), preparation->claim); !chosen.ok())
    return End(preparation, chosen);
  Clear(preparation, 0);
}

Status ClaimPreparer::Choose(const AllocatedClaim& allocated, PreparedClaim& claim) {
  claim.pod = allocated.pod;
  claim.pod_uid = allocated.pod_uid;
  for (const AllocatedDevice& device : allocated.devices) {
    auto chosen = ChooseSlot(device, allocated.pod);
    if (!chosen.ok()) return chosen.status();
    slots_.Claim(chosen->resource, chosen->slot, claim.pod, claim.pod_uid, chosen->amounts);
    claim.devices.push_back(std::move(*chosen));
  }
  return OkStatus();
}

StatusOr<PreparedDevice> ClaimPreparer::ChooseSlot(const AllocatedDevice& device,
                                                   const PodName& pod) const {
  for (const PoolOffer& offer : slots_.ClaimPools()) {
    if (offer.slots.empty()) continue;
    const bool whole = PoolDeviceName(offer) == device.device;
    const auto named = std::ranges::find_if(offer.slots, [&](const Slot& slot) {
      return SlotDeviceName(offer, slot) == device.device;
    });
    if (!whole && named == offer.slots.end()) continue;
    if (Admits(offer.pods, pod, std::nullopt) == PodAdmission::kRefused) {
      return Status(EACCES, "pod " + pod.name_space + "/" + pod.name + ": " + offer.pool +
                                " is for " + RulesText(offer.pods) + " only");
    }
    for (const OfferedSlot& slot : slots_.Slots(offer.resource)) {
      if (!slot.healthy || slots_.IsClaimed(offer.resource, slot.id)) continue;
      if (whole || slot.id == named->id)
        return PreparedDevice{device.request, device.device, offer.resource, slot.id,
                              device.amounts};
    }
    return Status(EBUSY, "no slot of " + offer.pool + " is free on this node at the moment");
  }
  return Status(ENOENT, "device " + device.device +
                            " is not on this node, or not yet: its pool was "
                            "removed or made anew, or the gateway is starting");
}

void ClaimPreparer::Clear(const PreparationPtr& preparation, size_t at) {
  if (at == preparation->claim.devices.size()) return End(preparation, OkStatus());
  const PreparedDevice& device = preparation->claim.devices[at];
  slots_.Allocate(
      device.resource, {device.slot},
      [this, preparation, at, alive = alive_](const StatusOr<std::vector<Slot>>& slots) {
        if (!*alive) return;
        if (!slots.ok()) return End(preparation, slots.status());
        Clear(preparation, at + 1);
      });
}

void ClaimPreparer::End(const PreparationPtr& preparation, const Status& status) {
  Status outcome = status.ok() ? Keep(*preparation) : status;
  preparing_.erase(preparation->name.uid);
  ++(outcome.ok() ? counters_.prepares : counters_.refusals);
  counters_.prepared = prepared_.size();
  const PreparedClaim& claim = preparation->claim;
  if (!outcome.ok()) {
    for (const PreparedDevice& device : claim.devices) slots_.Unclaim(device.resource, device.slot);
    RemoveOtherCdi();
    spdlog::warn("claim {}/{} is not prepared: {}", preparation->name.name_space,
                 preparation->name.name, outcome.text());
  }
  for (const Prepared& done : preparation->waiting) {
    if (outcome.ok()) {
      done(claim);
    } else {
      done(outcome);
    }
  }
}

Status ClaimPreparer::Keep(const Preparation& preparation) {
  if (Status written = WriteCdi(preparation.claim); !written.ok()) return written;
  prepared_[preparation.name.uid] = preparation.claim;
  Status saved = SavePreparedClaims(settings_.checkpoint, prepared_);
  if (!saved.ok()) prepared_.erase(preparation.name.uid);
  return saved;
}

Status ClaimPreparer::Unprepare(const std::string& uid) {
  if (!damaged_.ok()) return damaged_;
  if (preparing_.contains(uid)) return {EAGAIN, "the claim is being prepared; try again"};
  const auto known = prepared_.find(uid);
  if (known == prepared_.end()) return OkStatus();
  Status forgotten = Forget(known);
  if (forgotten.ok()) ++counters_.unprepares;
  return forgotten;
}

Status ClaimPreparer::Release(const std::string& uid) {
  const auto known = prepared_.find(uid);
  if (known == prepared_.end()) return OkStatus();
  Status forgotten = Forget(known);
  if (forgotten.ok()) ++counters_.stale;
  return forgotten;
}

Status ClaimPreparer::Forget(PreparedClaims::iterator known) {
  const std::string uid = known->first;
  const PreparedClaim claim = known->second;
  prepared_.erase(known);
  if (Status saved = SavePreparedClaims(settings_.checkpoint, prepared_); !saved.ok()) {
    prepared_[uid] = claim;
    return saved;
  }
  counters_.prepared = prepared_.size();
  for (const PreparedDevice& device : claim.devices) slots_.Unclaim(device.resource, device.slot);
  RemoveOtherCdi();
  return OkStatus();
}

Status ClaimPreparer::WriteCdi(const PreparedClaim& claim) const {
  for (const PreparedDevice& device : claim.devices) {
    const auto slot = slots_.Find(device.resource, device.slot);
    if (!slot.ok()) return slot.status();
    Status written = WriteCdiSpec(settings_.containers.cdi_dir, CdiKind::kClaim, device.slot,
                                  EditsFor(slot.value(), settings_.containers));
    if (!written.ok()) return written;
  }
  return OkStatus();
}

void ClaimPreparer::RemoveOtherCdi() const {
  std::set<std::string> kept;
  for (const auto& [uid, claim] : prepared_)
    for (const PreparedDevice& device : claim.devices) kept.insert(device.slot);
  // Claims in preparation.
  for (const auto& [uid, preparation] : preparing_)
    for (const PreparedDevice& device : preparation->claim.devices) kept.insert(device.slot);
  KeepCdiSpecs(settings_.containers.cdi_dir, CdiKind::kClaim, kept);
}

}  // namespace rocegw::agent
