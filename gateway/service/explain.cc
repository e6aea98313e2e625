// SPDX-License-Identifier: Apache-2.0
#include "gateway/service/explain.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gateway/metrics/drop_reason.h"
#include "gateway/port/port_counters.h"
#include "gateway/service/state_messages.h"
#include "gateway/tenant/settings.h"

namespace rocegw::service {
namespace {

using gateway::v1::ExplainRequest;
using gateway::v1::Finding;
using gateway::v1::FindingKind;

constexpr uint8_t kReadyToSend = 3;  // enum ibv_qp_state
constexpr uint8_t kFirstFailed = 5;  // SQE, then ERR
constexpr std::array kQpStates = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

class Explanation {
 public:
  Explanation(const ExplainRequest& request, const GatewayIdentity& identity,
              const session::StateSnapshot& snapshot)
      : snapshot_(snapshot),
        gateway_("gateways/" + identity.name),
        scope_(request.pool()),
        qpn_(request.qpn()),
        peer_(request.peer()) {
    for (const session::SessionRow& row : snapshot.sessions) sessions_[row.id] = &row;
  }

  void AddReadiness(const std::string& not_ready_reason) {
    if (!not_ready_reason.empty())
      Add(gateway::v1::NOT_READY, gateway_, "NOT_READY", not_ready_reason);
    if (IsCutDown()) return;
    for (const session::PortRow& port : snapshot_.ports) {
      if (!port.up || !port.note.empty()) {
        Add(gateway::v1::NOT_READY, gateway_ + "/ports/" + port.name,
            port.up ? "PORT_DEGRADED" : "PORT_DOWN",
            port.note.empty() ? "the port is down" : port.note);
      }
    }
  }

  void AddDrain() {
    const session::DrainRow& drain = snapshot_.drain;
    if (!drain.active) return;
    std::string text =
        "it drains: programs that attach, new queue pairs, listeners and connections "
        "are refused";
    if (drain.empty) {
      text += "; nothing holds it any more";
    } else if (scope_.empty()) {
      text += "; held by " + std::to_string(drain.sessions) + " sessions with " +
              std::to_string(drain.qps) + " queue pairs";
      for (const std::string& holder : drain.holders) text += "; " + holder;
    }
    FillTime(drain.start_ns,
             *Add(gateway::v1::TAKES_NOTHING_NEW, gateway_, "DRAINING", std::move(text))
                  .mutable_last_time());
  }

  void AddRejections(const gateway::v1::GetConfigResponse& config) {
    for (const types::v1::Rejection& rejection : config.rejections()) {
      if (!scope_.empty() && !tenant::IsInScope(scope_, rejection.object()) &&
          rejection.object() != tenant::TenantOf(scope_)) {
        continue;
      }
      Add(gateway::v1::CONFIGURATION_REJECTED, rejection.object(), rejection.reason(),
          rejection.message() + "; what it had before stays in force");
    }
  }

  // Limits the remaining explanation to the pool of the requested queue pair.
  void AddQueuePairs() {
    bool found = false;
    for (const session::QpRow& qp : snapshot_.qps) {
      const auto known = sessions_.find(qp.session);
      const std::string pool = known == sessions_.end() ? "" : known->second->pool;
      if (!scope_.empty() && !tenant::IsInScope(scope_, pool)) continue;
      if (!peer_.empty() && wire::AddressText(qp.remote_gid) != peer_) continue;
      if (qpn_ != 0 && qp.qpn != qpn_) continue;
      found = true;
      if (qpn_ != 0) pool_of_qp_ = pool;
      if (qp.state >= kFirstFailed || (qpn_ != 0 && qp.state < kReadyToSend)) AddQueuePair(qp);
    }
    if (qpn_ != 0 && !found) {
      Add(gateway::v1::QUEUE_PAIR_FAILED, QpName(qpn_), "UNKNOWN",
          "there is no such queue pair" + (scope_.empty() ? "" : " in " + scope_) +
              "; packets to it are dropped (unknown_qpn)");
    }
  }

  void AddLimits() {
    for (const session::PoolRow& pool : snapshot_.pools) {
      if (!Concerns(pool.name)) continue;
      for (const session::LimitRow& limit : pool.limits) {
        if (limit.peak != tenant::kUnlimited && limit.used >= limit.peak && limit.used != 0) {
          Add(gateway::v1::LIMIT_REACHED, pool.name, limit.limit,
              "the pool holds " + std::to_string(limit.used) + " of at most " +
                  std::to_string(limit.peak) + " " + limit.limit +
                  "; more is refused until something is given back or spec.quota.peak." +
                  limit.limit + " is raised");
        }
        // The event log has only the latest events.
        if (limit.refused != 0 && !HasEvent(pool.name)) {
          Add(gateway::v1::REQUEST_REFUSED, pool.name, limit.limit,
              "requests were refused for the limit " + limit.limit)
              .set_count(limit.refused);
        }
      }
    }
  }

  void AddEvents() {
    for (const session::EventRow& event : snapshot_.events) {
      const bool of_gateway = event.object == gateway_;
      if (of_gateway ? !scope_.empty() : !Concerns(event.object)) continue;
      if (!peer_.empty() && event.text.find(peer_) == std::string::npos) continue;
      Finding& finding = Add(gateway::v1::REQUEST_REFUSED, event.object, event.reason, event.text);
      finding.set_count(event.count);
      FillTime(event.last_ns, *finding.mutable_last_time());
    }
  }

  // A received packet is dropped before its tenant is known, so tenants do not see these counters.
  void AddDrops() {
    if (IsCutDown()) return;
    for (size_t i = 1; i < metrics::kDropReasonCount; ++i) {
      uint64_t count = i < snapshot_.control_drops.size() ? snapshot_.control_drops[i] : 0;
      for (const session::WorkerRow& worker : snapshot_.workers) count += worker.drops[i];
      if (count == 0) continue;
      const auto reason = static_cast<metrics::DropReason>(i);
      const bool local = std::string(metrics::DropReasonSide(reason)) == "local";
      Add(gateway::v1::PACKETS_DROPPED, gateway_, metrics::DropReasonName(reason),
          std::string(metrics::DropReasonHelp(reason)) +
              (local ? "; the cause is on this host" : "; the cause is what was sent"))
          .set_count(count);
    }
    for (size_t i = 0; i < std::size(port::kPortCounters); ++i) {
      const auto& info = port::kPortCounters[i];
      const std::string name = info.name;
      if (name != "tx_lost" && name != "rx_overflow" && name != "rx_flood" &&
          name != "rx_malformed")
        continue;
      for (const session::PortRow& port : snapshot_.ports) {
        uint64_t count = 0;
        for (const session::PortQueueRow& queue : snapshot_.port_queues)
          if (queue.port == port.name) count += queue.counters[i];
        if (count == 0) continue;
        Add(gateway::v1::PACKETS_LOST, gateway_ + "/ports/" + port.name, name, info.help)
            .set_count(count);
      }
    }
  }

  gateway::v1::ExplainResponse Take() {
    std::stable_sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
      return std::pair(a.kind(), b.count()) < std::pair(b.kind(), a.count());
    });
    gateway::v1::ExplainResponse response;
    for (Finding& finding : findings_) response.add_findings()->Swap(&finding);
    return response;
  }

 private:
  Finding& Add(FindingKind kind, std::string object, std::string reason, std::string message) {
    Finding& finding = findings_.emplace_back();
    finding.set_kind(kind);
    finding.set_object(std::move(object));
    finding.set_reason(std::move(reason));
    finding.set_message(std::move(message));
    return finding;
  }
  void AddQueuePair(const session::QpRow& qp) {
    const char* const state = kQpStates[std::min<size_t>(qp.state, kQpStates.size() - 1)];
    std::string text = std::string("it is in state ") + state;
    const auto known = sessions_.find(qp.session);
    if (known != sessions_.end()) {
      text += ", of " + known->second->comm + " (pid " + std::to_string(known->second->pid) + ")";
    }
    if (qp.state < kFirstFailed) {
      text += "; it takes part when its program has brought it to RTS";
    } else if (!qp.error.empty()) {
      text += ": " + qp.error;
    } else {
      text += "; the status of its first failed completion tells why";
    }
    Add(gateway::v1::QUEUE_PAIR_FAILED, QpName(qp.qpn), state, std::move(text));
  }
  std::string QpName(uint32_t qpn) const {
    char number[16];
    std::snprintf(number, sizeof number, "0x%06x", qpn);
    return gateway_ + "/qps/" + number;
  }
  bool Concerns(const std::string& pool) const {
    if (!pool_of_qp_.empty()) return pool == pool_of_qp_;
    return qpn_ == 0 && (scope_.empty() || tenant::IsInScope(scope_, pool));
  }
  bool IsCutDown() const { return !scope_.empty(); }
  bool HasEvent(const std::string& pool) const {
    return std::any_of(snapshot_.events.begin(), snapshot_.events.end(),
                       [&](const session::EventRow& event) { return event.object == pool; });
  }

  const session::StateSnapshot& snapshot_;
  const std::string gateway_;
  const std::string scope_;
  const uint32_t qpn_;
  const std::string peer_;
  std::string pool_of_qp_;
  std::map<uint32_t, const session::SessionRow*> sessions_;
  std::vector<Finding> findings_;
};

}  // namespace

gateway::v1::ExplainResponse Explain(const ExplainRequest& request, const GatewayIdentity& identity,
                                     const std::string& not_ready_reason,
                                     const session::StateSnapshot& snapshot,
                                     const gateway::v1::GetConfigResponse& config) {
  Explanation explanation(request, identity, snapshot);
  explanation.AddReadiness(not_ready_reason);
  explanation.AddDrain();
  explanation.AddRejections(config);
  explanation.AddQueuePairs();
  explanation.AddLimits();
  explanation.AddEvents();
  explanation.AddDrops();
  gateway::v1::ExplainResponse response = explanation.Take();
  FillTime(identity.now_ns(), *response.mutable_read_time());
  return response;
}

}  // namespace rocegw::service
