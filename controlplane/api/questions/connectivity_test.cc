// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/questions/connectivity_test.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "controlplane/api/calls/audit_note.h"
#include "gateway/base/service_advice.h"

namespace rocegw::api {
namespace {

using admin::v1::TestConnectivityRequest;
using admin::v1::TestConnectivityResponse;
using fleet::v1::ProbeReport;
using fleet::v1::TunnelAnswer;
using fleet::v1::TunnelQuestion;
using google::protobuf::util::TimeUtil;
using Clock = QuestionRouter::Clock;

constexpr char kDefaultPool[] = "tenants/default/pools/default";
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

class TestReactor final : public grpc::ServerUnaryReactor,
                          public std::enable_shared_from_this<TestReactor> {
 public:
  TestReactor(QuestionRouter& router, ConnectivityTests& tests, TestConnectivityRequest request,
              TestConnectivityResponse& response, Clock::time_point deadline)
      : router_(router),
        tests_(tests),
        request_(std::move(request)),
        response_(response),
        deadline_(deadline) {}

  // Keeps the object until gRPC is done with it.
  void Live() { self_ = shared_from_this(); }
  void Start() {
    TunnelQuestion question;
    question.mutable_probe()->set_pool(request_.pool());
    Ask(waiting_, request_.to(), question, Before(Left()), &TestReactor::OnWaiting);
  }
  void End(const grpc::Status& status) {
    QuestionRouter::QuestionId waiting = 0;
    QuestionRouter::QuestionId connecting = 0;
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(over_, true)) return;
      waiting = waiting_.id;
      connecting = connecting_.id;
    }
    if (waiting != 0) router_.Cancel(waiting);
    if (connecting != 0) router_.Cancel(connecting);
    Finish(status);
  }

  // Called when the caller has cancelled.
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override {
    tests_.End();
    self_.reset();
  }

 private:
  struct Half {
    QuestionRouter::QuestionId id = 0;
    bool told = false;  // the probe has reported
  };
  using OnReport = void (TestReactor::*)(const ProbeReport& report);

  std::chrono::milliseconds Left() const {
    return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()),
                    std::chrono::milliseconds(1));
  }

  void Ask(Half& end, const std::string& gateway, TunnelQuestion& question,
           std::chrono::milliseconds limit, OnReport on_report) {
    *question.mutable_probe()->mutable_time_limit() =
        TimeUtil::MillisecondsToDuration(limit.count());
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
    // The call ended before the question had its id.
    if (over && id != 0) router_.Cancel(id);
  }
  void OnPart(Half& end, const TunnelAnswer& answer, OnReport on_report) {
    {
      const std::lock_guard lock(mutex_);
      if (over_) return;
      end.id = answer.id();
      end.told = true;
    }
    (this->*on_report)(answer.probe());
  }
  void OnQuestionEnd(const Half& end, const std::string& gateway,
                     const sync::TunnelResult& result) {
    {
      const std::lock_guard lock(mutex_);
      if (over_ || (end.told && result.code == 0)) return;
    }
    const std::string message =
        result.code == 0 ? "the agent answered without a word" : result.message;
    Fail(gateway, FaultOf(result), message);
  }

  void OnWaiting(const ProbeReport& report) {
    if (report.fault() != types::v1::CONNECTIVITY_FAULT_UNSPECIFIED)
      return Fail(request_.to(), report.fault(), report.message());
    {
      const std::lock_guard lock(mutex_);
      if (over_) return;
      response_.set_address(report.address());
    }
    TunnelQuestion question;
    fleet::v1::ProbeRequest& probe = *question.mutable_probe();
    probe.set_pool(request_.pool());
    probe.set_address(report.address());
    probe.set_port(report.port());
    probe.set_message_bytes(request_.message_bytes() == 0 ? kUsualBytes : request_.message_bytes());
    probe.set_round_trips(request_.round_trips() == 0 ? kUsualRoundTrips : request_.round_trips());
    probe.set_bulk_bytes(request_.bulk_bytes());
    Ask(connecting_, request_.from(), question, Before(Before(Left())), &TestReactor::OnConnecting);
  }
  void OnConnecting(const ProbeReport& report) {
    if (report.fault() != types::v1::CONNECTIVITY_FAULT_UNSPECIFIED)
      return Fail(request_.from(), report.fault(), report.message());
    {
      const std::lock_guard lock(mutex_);
      if (over_ || response_.fault() != types::v1::CONNECTIVITY_FAULT_UNSPECIFIED) return;
      Name();
      *response_.mutable_connectivity() = report.connectivity();
    }
    End(grpc::Status::OK);
  }

  void Name() {
    response_.set_from(request_.from());
    response_.set_to(request_.to());
  }
  void Fail(const std::string& at, types::v1::ConnectivityFault fault, const std::string& message) {
    {
      const std::lock_guard lock(mutex_);
      if (over_ || response_.fault() != types::v1::CONNECTIVITY_FAULT_UNSPECIFIED) return;
      Name();
      response_.set_fault(fault);
      response_.set_noticed_at(at);
      response_.set_message(message);
      const std::string& other = at == request_.from() ? request_.to() : request_.from();
      response_.set_remedy(RemedyOf(fault, model::NameOf(at).id, model::NameOf(other).id));
    }
    End(grpc::Status::OK);
  }

  QuestionRouter& router_;
  ConnectivityTests& tests_;
  const TestConnectivityRequest request_;
  TestConnectivityResponse& response_;
  const Clock::time_point deadline_;
  std::mutex mutex_;
  Half waiting_;
  Half connecting_;
  bool over_ = false;
  std::shared_ptr<TestReactor> self_;  // held until gRPC is done
};

}  // namespace

bool ConnectivityTests::Begin() {
  if (under_way_.fetch_add(1) < kMost) return true;
  --under_way_;
  return false;
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

grpc::ServerUnaryReactor* NewConnectivityTest(const grpc::CallbackServerContext& context,
                                              const GatewayQuestions& questions,
                                              ConnectivityTests& tests, const Admitted& caller,
                                              const TestConnectivityRequest& request,
                                              TestConnectivityResponse& response) {
  TestConnectivityRequest asked = request;
  if (asked.pool().empty()) asked.set_pool(kDefaultPool);
  const auto reactor = std::make_shared<TestReactor>(questions.router, tests, std::move(asked),
                                                     response, context.deadline());
  reactor->Live();
  store::Transaction record;
  record.then = {AuditOf(caller, request.from(), request)};
  questions.backend.store.TxnAsync(std::move(record),
                                   [reactor](const StatusOr<store::TransactionResult>& written) {
                                     if (!written.ok())
                                       return reactor->End(ToStatus(FromStore(written.status())));
                                     reactor->Start();
                                   });
  return reactor.get();
}

}  // namespace rocegw::api
