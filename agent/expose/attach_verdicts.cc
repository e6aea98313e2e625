// SPDX-License-Identifier: Apache-2.0
#include "agent/expose/attach_verdicts.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace rocegw::agent {

AttachVerdicts::AttachVerdicts(ControlLoop& loop, GatewayPort& gateway, VerdictSource& source,
                               Duration retry)
    : loop_(loop), gateway_(gateway), source_(source), retry_(retry) {
  Ask();
}

AttachVerdicts::~AttachVerdicts() {
  *alive_ = false;
  loop_.Cancel(timer_);
}

void AttachVerdicts::Ask() {
  timer_ = 0;
  using Held = StatusOr<gateway::v1::ListHeldAttachesResponse>;
  gateway_.ListHeldAttaches(after_, [this, alive = alive_](const Held& held) {
    if (!*alive) return;
    if (!held.ok()) {
      // The gateway is not running, or too old for this call.
      timer_ = loop_.At(ControlLoop::Now() + retry_, [this] { Ask(); });
      return;
    }
    std::set<uint64_t> listed;
    for (const gateway::v1::HeldAttach& attach : held.value().attaches()) {
      listed.insert(attach.id());
      if (!decided_.contains(attach.id())) Decide(attach);
    }
    if (!listed.empty()) {
      after_ = *listed.rbegin();
      decided_ = std::move(listed);
    }
    Ask();
  });
}

void AttachVerdicts::Decide(const gateway::v1::HeldAttach& attach) {
  source_.Ask(attach, [this, attach, alive = alive_](const Verdict& verdict) {
    if (*alive) Answer(attach, verdict);
  });
}

void AttachVerdicts::Answer(const gateway::v1::HeldAttach& attach, const Verdict& verdict) {
  ++(verdict.allowed ? counters_.allowed : counters_.denied);
  if (!verdict.allowed) {
    spdlog::warn("{} (pid {}, uid {}) may not attach to {}: {}", attach.comm(), attach.pid(),
                 attach.uid(), attach.pool(), verdict.reason);
  }
  gateway_.AnswerAttach(attach.id(), verdict.allowed, verdict.reason, verdict.limits);
}

}  // namespace rocegw::agent
