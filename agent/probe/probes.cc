// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/probes.h"

#include <google/protobuf/util/time_util.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "agent/probe/probe_outcome.h"

namespace rocegw::agent {
namespace {

using fleet::v1::ProbeReport;
using fleet::v1::ProbeRequest;
using fleet::v1::TunnelAnswer;
using fleet::v1::TunnelQuestion;
using google::protobuf::util::TimeUtil;

constexpr int64_t kLeastMs = 100;
constexpr int64_t kMostMs = 60'000;
// Additional time for a probe to report that it reached its limit.
constexpr Duration kGrace = Seconds(1);
// Time limit of the queries for a probe.
constexpr int64_t kAnswerSeconds = 5;
constexpr int32_t kPage = 1000;

int64_t LimitMs(const ProbeRequest& request) {
  return std::clamp(TimeUtil::DurationToMilliseconds(request.time_limit()), kLeastMs, kMostMs);
}

std::vector<std::string> Words(const std::string& folder, const std::string& socket,
                               const ProbeRequest& request) {
  std::vector<std::string> words = {folder + "/rocegw-run",
                                    "--socket",
                                    socket,
                                    "--",
                                    folder + "/rocegw-probe",
                                    "--time-limit",
                                    std::to_string(LimitMs(request))};
  if (request.address().empty()) return words;
  words.insert(words.end(), {"--connect", request.address(), std::to_string(request.port()),
                             "--message-bytes", std::to_string(request.message_bytes()),
                             "--round-trips", std::to_string(request.round_trips())});
  if (request.bulk_bytes() != 0)
    words.insert(words.end(), {"--bulk-bytes", std::to_string(request.bulk_bytes())});
  if (request.plain()) words.emplace_back("--plain");
  return words;
}

// Returns the agent's environment without variables that would redirect the probe; makes the
// library report refusals.
std::vector<std::string> Environment() {
  std::vector<std::string> variables = {"ROCEGW_RUN=1"};
  for (char** at = environ; *at != nullptr; ++at) {
    if (std::strncmp(*at, "ROCEGW_", 7) != 0) variables.emplace_back(*at);
  }
  return variables;
}

// Gateway and library are on one host: a slow answer is of no use.
void SetDeadline(TunnelQuestion& question) {
  *question.mutable_deadline() =
      TimeUtil::GetCurrentTime() + TimeUtil::SecondsToDuration(kAnswerSeconds);
}

}  // namespace

Probes::Probes(ControlLoop& loop, GatewayPort& gateway, std::string folder)
    : loop_(loop), gateway_(gateway), folder_(std::move(folder)) {}

Probes::~Probes() {
  *alive_ = false;
  for (auto& [question, probe] : probes_) loop_.Cancel(probe.timer);
}

void Probes::Ask(uint64_t question, const TunnelQuestion& asked, Answered answered) {
  gateway_.Ask(asked, [this, alive = alive_, question,
                       answered = std::move(answered)](const TunnelAnswer& answer) {
    if (!*alive) return;
    const auto at = probes_.find(question);
    if (at != probes_.end()) answered(at->second, answer);
  });
}

void Probes::Start(uint64_t question, const ProbeRequest& request, Part part) {
  const bool taken = probes_.contains(question);
  if (taken || running() >= kMost) {
    TunnelAnswer answer;
    *answer.mutable_probe() =
        Fault(types::v1::TOO_MANY_PROBES, std::to_string(running()) + " probes run here already");
    return part(std::move(answer));
  }
  Probe& probe = probes_[question];
  probe.request = request;
  probe.part = std::move(part);
  probe.number = ++last_;
  for (const char* name : {"/rocegw-run", "/rocegw-probe"}) {
    if (access((folder_ + name).c_str(), X_OK) != 0)
      return Finish(question, Fault(types::v1::NO_PROBE, "there is no " + folder_ + name));
  }
  FindSocket(question, {});
}

void Probes::FindSocket(uint64_t question, const std::string& page_token) {
  TunnelQuestion asked;
  SetDeadline(asked);
  asked.mutable_list_pools()->set_page_size(kPage);
  asked.mutable_list_pools()->set_page_token(page_token);
  Ask(question, asked, [this, question](Probe& probe, const TunnelAnswer& answer) {
    if (answer.code() != 0) {
      return Finish(question, Fault(types::v1::ATTACH_REFUSED,
                                    "the gateway does not answer: " + answer.message()));
    }
    for (const types::v1::PoolUsage& pool : answer.pools().pools()) {
      if (pool.pool() != probe.request.pool()) continue;
      if (pool.sockets().empty()) {
        return Finish(question, Fault(types::v1::ATTACH_REFUSED,
                                      pool.pool() + " has no attach socket on the gateway"));
      }
      return Launch(question, probe, pool.sockets(0));
    }
    if (!answer.pools().next_page_token().empty())
      return FindSocket(question, answer.pools().next_page_token());
    Finish(question,
           Fault(types::v1::ATTACH_REFUSED, "the gateway has no pool " + probe.request.pool()));
  });
}

void Probes::Launch(uint64_t question, Probe& probe, const std::string& socket) {
  ChildProcess::Handlers handlers;
  handlers.line = [this, question, number = probe.number](std::string_view text) {
    OnLine(question, number, text);
  };
  handlers.ended = [this, question, number = probe.number](int status) {
    OnEnded(question, number, status);
  };
  const std::vector<std::string> words = Words(folder_, socket, probe.request);
  auto process = ChildProcess::Start(loop_, words, Environment(), std::move(handlers));
  if (!process.ok())
    return Finish(question,
                  Fault(types::v1::NO_PROBE,
                        process.status().text() + ": " + std::strerror(process.status().error())));
  probe.process = std::move(*process);
  const Duration limit = Milliseconds(LimitMs(probe.request));
  probe.timer = loop_.At(ControlLoop::Now() + limit + kGrace, [this, question] {
    const ProbeReport late =
        Fault(types::v1::TIMED_OUT, "the probe did not end in time and was killed");
    Probe& silent = probes_.at(question);
    silent.ending ? Finish(question, late) : Fail(question, silent, late);
  });
  spdlog::info("a probe {}, at {}",
               probe.request.address().empty() ? "waits" : "connects to " + probe.request.address(),
               socket);
}

Probes::Probe* Probes::Find(uint64_t question, uint64_t number) {
  const auto at = probes_.find(question);
  return at == probes_.end() || at->second.number != number ? nullptr : &at->second;
}

void Probes::OnLine(uint64_t question, uint64_t number, std::string_view text) {
  Probe* const probe = Find(question, number);
  const std::optional<probe::Line> line = probe::ReadLine(text);
  if (probe == nullptr) return;
  if (!line.has_value()) {
    // Only the line of the network beside RDMA comes after the result: nothing else is awaited.
    if (probe->measured.has_value())
      Fail(question, *probe, Fault(types::v1::PROBE_FAILED, "the probe's line is not understood"));
    return;
  }
  if (const auto* plain = std::get_if<probe::PlainPath>(&*line)) {
    probe->plain = PlainOf(*plain);
    if (probe->measured.has_value()) OnMeasured(question, *probe);
    return;
  }
  if (const auto* measured = std::get_if<probe::Measured>(&*line)) {
    probe->measured = *measured;
    // A probe of an older package tells of the network beside RDMA first.
    if (!probe->request.plain() || probe->plain.has_value()) OnMeasured(question, *probe);
    return;
  }
  const ProbeReport report = ReportOf(*line, probe->process->LastError());
  if (std::holds_alternative<probe::Failed>(*line)) return Fail(question, *probe, report);
  TunnelAnswer answer;
  answer.set_more(true);
  *answer.mutable_probe() = report;
  probe->part(std::move(answer));
}

void Probes::Fail(uint64_t question, Probe& probe, const ProbeReport& report) {
  if (!probe.measured.has_value()) return Finish(question, report);
  if (probe.ending) return;
  probe.plain.emplace().set_problem(report.message());
  OnMeasured(question, probe);
}

void Probes::OnMeasured(uint64_t question, Probe& probe) {
  probe.ending = true;
  TunnelQuestion asked;
  SetDeadline(asked);
  asked.mutable_list_qps()->set_qpn(probe.measured->qpn);
  // The queue pair stays until the probe is released.
  Ask(question, asked, [this, question](const Probe& ended, const TunnelAnswer& answer) {
    ProbeReport whole = ReportOf(*ended.measured, {});
    if (ended.plain.has_value()) *whole.mutable_connectivity()->mutable_plain() = *ended.plain;
    for (const types::v1::QueuePair& qp : answer.qps().qps()) {
      whole.mutable_connectivity()->set_transport(qp.transport());
      whole.mutable_connectivity()->set_transport_reason(qp.transport_reason());
    }
    Finish(question, whole);
  });
}

void Probes::OnEnded(uint64_t question, uint64_t number, int status) {
  if (dying_.erase(number) != 0) return;
  if (Probe* const probe = Find(question, number))
    Fail(question, *probe, ReportOfEnd(status, probe->process->LastError()));
}

void Probes::Finish(uint64_t question, const ProbeReport& report) {
  const Part part = std::move(probes_.at(question).part);
  Remove(question);
  TunnelAnswer answer;
  *answer.mutable_probe() = report;
  part(std::move(answer));
}

void Probes::Remove(uint64_t question) {
  const auto at = probes_.find(question);
  if (at == probes_.end()) return;
  Probe& probe = at->second;
  loop_.Cancel(probe.timer);
  if (probe.process != nullptr && probe.process->runs()) {
    probe.process->Kill();
    dying_[probe.number] = std::move(probe.process);
  }
  probes_.erase(at);
}

void Probes::Cancel(uint64_t question) { Remove(question); }

void Probes::CancelAll() {
  while (!probes_.empty()) Remove(probes_.begin()->first);
}

}  // namespace rocegw::agent
