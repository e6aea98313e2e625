// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/questions/probe_pair.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <utility>

#include "controlplane/api/questions/bounded_plain.h"
#include "controlplane/model/resource_name.h"
#include "gateway/base/service_advice.h"

namespace rocegw::api {
namespace {

using admin::v1::TestConnectivityRequest;
using admin::v1::TestConnectivityResponse;
using fleet::v1::ProbeReport;
using fleet::v1::TunnelAnswer;
using fleet::v1::TunnelQuestion;
using google::protobuf::util::TimeUtil;

constexpr uint32_t kUsualBytes = 64;
constexpr uint32_t kUsualRoundTrips = 1000;
// Limit of parts in a probe's answer.
constexpr uint32_t kMostParts = 4;
// Margin between time limits: the connecting probe ends before the waiting one, and both before the
// call, so that a probe reports what it waited for. Short times are halved.
constexpr std::chrono::milliseconds kMargin(1000);

std::chrono::milliseconds Before(std::chrono::milliseconds time) {
  return std::max(time - kMargin, time / 2);
}

// Returns the fault for the end of a question without a probe's report.
types::v1::ConnectivityFault FaultOf(const sync::TunnelResult& result) {
  switch (result.code) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return types::v1::AGENT_AWAY;
    case grpc::StatusCode::UNIMPLEMENTED:
      return types::v1::NO_PROBE;
    default:
      return types::v1::PROBE_FAILED;
  }
}

}  // namespace

ProbePair::ProbePair(QuestionRouter& router, TestConnectivityRequest request,
                     Clock::time_point deadline, Done done)
    : router_(router), request_(std::move(request)), deadline_(deadline), done_(std::move(done)) {}

std::shared_ptr<ProbePair> ProbePair::Start(QuestionRouter& router, TestConnectivityRequest request,
                                            Clock::time_point deadline, Done done) {
  const std::shared_ptr<ProbePair> pair(
      new ProbePair(router, std::move(request), deadline, std::move(done)));
  TunnelQuestion question;
  question.mutable_probe()->set_pool(pair->request_.pool());
  pair->Ask(pair->waiting_, pair->request_.to(), question, Before(pair->Left()),
            &ProbePair::OnWaiting);
  return pair;
}

bool ProbePair::Close(Done* done) {
  QuestionRouter::QuestionId waiting = 0;
  QuestionRouter::QuestionId connecting = 0;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(over_, true)) return false;
    waiting = waiting_.id;
    connecting = connecting_.id;
    *done = std::move(done_);
  }
  if (waiting != 0) router_.Cancel(waiting);
  if (connecting != 0) router_.Cancel(connecting);
  return true;
}

void ProbePair::Cancel() {
  Done dropped;
  (void)Close(&dropped);
}

void ProbePair::Finish() {
  Done done;
  if (Close(&done)) done(result_);
}

std::chrono::milliseconds ProbePair::Left() const {
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()),
                  std::chrono::milliseconds(1));
}

void ProbePair::Ask(Half& end, const std::string& gateway, TunnelQuestion& question,
                    std::chrono::milliseconds limit, OnReport on_report) {
  *question.mutable_probe()->mutable_time_limit() = TimeUtil::MillisecondsToDuration(limit.count());
  const auto id = router_.AskInParts(
      gateway, question, deadline_, kMostParts,
      [self = shared_from_this(), &end, on_report](const TunnelAnswer& answer) {
        self->OnPart(end, answer, on_report);
      },
      [self = shared_from_this(), &end, gateway](const sync::TunnelResult& result) {
        self->OnQuestionEnd(end, gateway, result);
      });
  bool over = false;
  {
    const std::lock_guard lock(mutex_);
    end.id = id;
    over = over_;
  }
  // The pair ended before the question had its id.
  if (over && id != 0) router_.Cancel(id);
}

void ProbePair::OnPart(Half& end, const TunnelAnswer& answer, OnReport on_report) {
  {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    end.id = answer.id();
    end.told = true;
  }
  (this->*on_report)(answer.probe());
}

void ProbePair::OnQuestionEnd(const Half& end, const std::string& gateway,
                              const sync::TunnelResult& result) {
  {
    const std::lock_guard lock(mutex_);
    if (over_ || (end.told && result.code == 0)) return;
  }
  const std::string message =
      result.code == 0 ? "the agent answered without a word" : result.message;
  Fail(gateway, FaultOf(result), message);
}

void ProbePair::OnWaiting(const ProbeReport& report) {
  if (report.fault() != types::v1::CONNECTIVITY_FAULT_UNSPECIFIED)
    return Fail(request_.to(), report.fault(), report.message());
  {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    result_.set_address(report.address());
  }
  TunnelQuestion question;
  fleet::v1::ProbeRequest& probe = *question.mutable_probe();
  probe.set_pool(request_.pool());
  probe.set_address(report.address());
  probe.set_port(report.port());
  probe.set_message_bytes(request_.message_bytes() == 0 ? kUsualBytes : request_.message_bytes());
  probe.set_round_trips(request_.round_trips() == 0 ? kUsualRoundTrips : request_.round_trips());
  probe.set_bulk_bytes(request_.bulk_bytes());
  probe.set_plain(request_.plain());
  Ask(connecting_, request_.from(), question, Before(Before(Left())), &ProbePair::OnConnecting);
}

void ProbePair::OnConnecting(const ProbeReport& report) {
  if (report.fault() != types::v1::CONNECTIVITY_FAULT_UNSPECIFIED)
    return Fail(request_.from(), report.fault(), report.message());
  {
    const std::lock_guard lock(mutex_);
    if (over_ || result_.fault() != types::v1::CONNECTIVITY_FAULT_UNSPECIFIED) return;
    result_.set_from(request_.from());
    result_.set_to(request_.to());
    types::v1::Connectivity& found = *result_.mutable_connectivity();
    found = report.connectivity();
    if (found.has_plain()) *found.mutable_plain() = Bounded(found.plain());
  }
  Finish();
}

void ProbePair::Fail(const std::string& at, types::v1::ConnectivityFault fault,
                     const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    if (over_ || result_.fault() != types::v1::CONNECTIVITY_FAULT_UNSPECIFIED) return;
    result_.set_from(request_.from());
    result_.set_to(request_.to());
    result_.set_fault(fault);
    result_.set_noticed_at(at);
    result_.set_message(message);
    const std::string& other = at == request_.from() ? request_.to() : request_.from();
    result_.set_remedy(RemedyOf(fault, model::NameOf(at).id, model::NameOf(other).id));
  }
  Finish();
}

std::string RemedyOf(types::v1::ConnectivityFault fault, const std::string& here,
                     const std::string& there) {
  switch (fault) {
    case types::v1::AGENT_AWAY:
      return "rocegwctl status " + here + "; on the host: " + HowToSeeState("rocegw-agent");
    case types::v1::NO_PROBE:
      return "install rocegw-probe, rocegw-run and librocegw-verbs.so of the agent's version "
             "beside "
             "it on " +
             here;
    case types::v1::TOO_MANY_PROBES:
      return "wait until other tests are over";
    case types::v1::ATTACH_REFUSED:
      return "rocegwctl explain -g " + here + "; rocegwctl get pools -g " + here;
    case types::v1::NO_ADDRESS:
      return "rocegwctl status " + here + " shows its ports: set them up, give them an address";
    case types::v1::UNREACHABLE:
      return "on " + here + ": ip route get to that address; rocegwctl doctor -g " + here;
    case types::v1::CONNECTION_REFUSED:
      return "rocegwctl explain -g " + there + " tells why it refuses";
    case types::v1::TIMED_OUT:
      return "let UDP port 4791 through both ways (firewalls, security groups), look at the links: "
             "rocegwctl doctor -g " +
             here + " and -g " + there;
    case types::v1::CONNECTION_LOST:
      return "rocegwctl explain -g " + here + " and -g " + there + " for what was dropped";
    case types::v1::CORRUPTED:
      return "something between the hosts, or on one, changes data: rocegwctl capture on both and "
             "compare";
    default:
      return "the agent's log on " + here + ": " + HowToReadLog("rocegw-agent");
  }
}

}  // namespace rocegw::api
