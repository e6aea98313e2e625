// SPDX-License-Identifier: Apache-2.0
#include "controlplane/donors/donor_reports.h"

#include <algorithm>
#include <set>
#include <utility>

#include "controlplane/donors/donor_choice.h"
#include "controlplane/donors/donor_shares.h"
#include "controlplane/model/plain_text.h"
#include "controlplane/model/serialized.h"
#include "controlplane/model/timestamp.h"

namespace rocegw::donors {
namespace {

using types::v1::DonorState;

constexpr size_t kMostDonorsOfGateway = 16;
constexpr size_t kLongestName = 128;
constexpr uint64_t kNotablePart = 64;

bool DiffersNotably(uint64_t before, uint64_t after, uint64_t donated) {
  const uint64_t difference = before > after ? before - after : after - before;
  return difference != 0 &&
         (before == 0 || after == 0 || difference >= std::max<uint64_t>(donated / kNotablePart, 1));
}

DonorState StateOf(const fleet::v1::DonorReport& report, const std::string& controller) {
  DonorState state;
  state.set_health(DonorState::SERVING);
  state.set_address(report.address());
  state.set_port(report.port());
  state.set_donated_bytes(report.donated_bytes());
  state.set_leased_bytes(report.leased_bytes());
  state.set_leases(report.leases());
  state.set_sessions(report.sessions());
  // The order of the names makes equal reports equal.
  std::map<std::string, uint64_t> tenants;
  for (const types::v1::DonorUse& use : report.tenants())
    tenants[model::PlainText(use.tenant(), kLongestName)] = use.bytes();
  for (const auto& [tenant, bytes] : tenants) {
    types::v1::DonorUse& use = *state.add_tenants();
    use.set_tenant(tenant);
    use.set_bytes(bytes);
  }
  state.set_draining(report.draining());
  state.set_applied_generation(report.applied_generation());
  state.set_followed_shares(report.followed_shares());
  *state.mutable_report_time() = model::Now();
  state.set_controller(controller);
  state.set_version(model::PlainText(report.version(), kLongestName));
  state.set_pool(report.pool());
  state.set_block_bytes(report.block_bytes());
  return state;
}

// Returns the state without amounts that change all the time.
std::string Lasting(DonorState state) {
  state.clear_leased_bytes();
  state.clear_leases();
  state.clear_sessions();
  state.clear_tenants();
  state.clear_report_time();
  return model::Serialized(state);
}

}  // namespace

bool IsNotable(const DonorState& before, const DonorState& after) {
  const uint64_t donated = after.donated_bytes();
  if (Lasting(before) != Lasting(after)) return true;
  if (DiffersNotably(before.leased_bytes(), after.leased_bytes(), donated)) return true;
  if ((before.leases() == 0) != (after.leases() == 0)) return true;
  if ((before.sessions() == 0) != (after.sessions() == 0)) return true;
  std::map<std::string, std::pair<uint64_t, uint64_t>> tenants;
  for (const auto& use : before.tenants()) tenants[use.tenant()].first = use.bytes();
  for (const auto& use : after.tenants()) tenants[use.tenant()].second = use.bytes();
  return std::ranges::any_of(tenants, [donated](const auto& tenant) {
    return DiffersNotably(tenant.second.first, tenant.second.second, donated);
  });
}

DonorReports::DonorReports(sync::FleetFollower& follower, sync::StatusWriter& statuses,
                           std::string controller, std::chrono::milliseconds silent_after)
    : follower_(follower),
      statuses_(statuses),
      controller_(std::move(controller)),
      silent_after_(silent_after),
      thread_([this] { Run(); }) {}

DonorReports::~DonorReports() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void DonorReports::Write(const std::string& name, const DonorState& state) {
  types::v1::Donor donor;
  *donor.mutable_status() = state;
  statuses_.Set(model::NameOf(name), model::Serialized(donor));
}

void DonorReports::Refuse(ReportRefusal why, fleet::v1::DonorOrder& order, std::string text) {
  ++refused_[static_cast<size_t>(why)];
  order.set_refusal(std::move(text));
}

void DonorReports::RefuseAll(const fleet::v1::ReportDonorsRequest& report) {
  refused_[static_cast<size_t>(ReportRefusal::kTooOften)] +=
      static_cast<uint64_t>(report.donors_size());
}

std::vector<std::string> DonorReports::Take(const fleet::v1::ReportDonorsRequest& report,
                                            fleet::v1::ReportDonorsResponse& answer) {
  ++reports_;
  std::vector<std::string> unknown;
  follower_.Read([&](const sync::Fleet& fleet) {
    const controllers::FleetView& view = fleet.view;
    const auto gateway = view.gateways.find(report.gateway());
    const std::string prefix = report.gateway() + "/donors/";
    std::map<std::string, const types::v1::Donor*> own;
    for (auto donor = view.donors.lower_bound(prefix);
         donor != view.donors.end() && donor->first.starts_with(prefix); ++donor) {
      own[donor->first] = &donor->second.object;
    }
    std::set<std::string> reported;
    for (const fleet::v1::DonorReport& one : report.donors()) {
      fleet::v1::DonorOrder& order = *answer.add_donors();
      order.set_name(one.name());
      const std::string name = prefix + one.name();
      // Sessions would be sent to another host.
      const bool foreign =
          !one.address().empty() &&
          (gateway == view.gateways.end() ||
           std::ranges::count(gateway->second.object.status().addresses(), one.address()) == 0);
      if (foreign) {
        Refuse(ReportRefusal::kForeignAddress, order,
               "it listens at " + one.address() + ", which is not an address of the gateway");
        continue;
      }
      const auto known = own.find(name);
      if (known == own.end()) {
        if (own.size() + unknown.size() >= kMostDonorsOfGateway) {
          Refuse(ReportRefusal::kTooMany, order,
                 "the host has " + std::to_string(own.size()) +
                     " donors already; delete those that are absent for good");
        } else {
          unknown.push_back(name);
        }
        continue;
      }
      reported.insert(name);
      const types::v1::Donor& donor = *known->second;
      const DonorState state = StateOf(one, controller_);
      if (IsNotable(donor.status(), state)) Write(name, state);
      order.set_generation(donor.meta().generation());
      order.set_draining(IsToDrain(view, donor));
      AddQuotas(view, donor, order);
    }
    const std::lock_guard lock(mutex_);
    for (const auto& [name, donor] : own) {
      if (reported.contains(name)) {
        heard_[name] = Clock::now();
        continue;
      }
      heard_.erase(name);
      if (donor->status().health() == DonorState::ABSENT ||
          donor->status().health() == DonorState::HEALTH_UNSPECIFIED) {
        continue;
      }
      DonorState state;
      state.set_health(DonorState::ABSENT);
      // A donor that was drained before it ended stays so.
      state.set_draining(donor->status().draining() && donor->status().leases() == 0);
      state.set_controller(controller_);
      *state.mutable_report_time() = model::Now();
      Write(name, state);
    }
  });
  return unknown;
}

void DonorReports::FindSilent(const sync::Fleet& fleet, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const bool leads = !fleet.replicas.empty() && fleet.replicas.begin()->first == controller_;
  std::erase_if(heard_,
                [&](const auto& heard) { return !fleet.view.donors.contains(heard.first); });
  for (const auto& [name, known] : fleet.view.donors) {
    const DonorState& state = known.object.status();
    const bool mine = state.controller() == controller_ ||
                      (leads && !fleet.replicas.contains(state.controller()));
    if (state.health() != DonorState::SERVING || !mine) {
      heard_.erase(name);
      continue;
    }
    const auto heard = heard_.try_emplace(name, now).first;
    if (now - heard->second < silent_after_) continue;
    heard_.erase(heard);
    DonorState silent = state;
    silent.set_health(DonorState::SILENT);
    Write(name, silent);
  }
}

void DonorReports::Run() {
  const auto pause =
      std::min<std::chrono::milliseconds>(silent_after_ / 5, std::chrono::seconds(5));
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    follower_.Read([this](const sync::Fleet& fleet) { FindSilent(fleet, Clock::now()); });
    lock.lock();
    wake_.wait_for(lock, pause, [this] { return stopping_; });
  }
}

}  // namespace rocegw::donors
