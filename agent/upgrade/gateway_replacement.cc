// SPDX-License-Identifier: Apache-2.0
#include "agent/upgrade/gateway_replacement.h"

#include <google/protobuf/util/time_util.h>
#include <grpcpp/support/status.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace rocegw::agent {
namespace {

using fleet::v1::TunnelAnswer;
using fleet::v1::TunnelQuestion;
using google::protobuf::util::TimeUtil;

constexpr Duration kLookEvery = Milliseconds(200);
constexpr int64_t kLookSeconds = 5;
constexpr int64_t kLongestSeconds = 600;
// Label of the gateway's refusal while another take-over is in progress.
constexpr char kBusy[] = "busy";

TunnelAnswer Failure(grpc::StatusCode code, const std::string& message) {
  TunnelAnswer answer;
  answer.set_code(code);
  answer.set_message(message);
  return answer;
}

}  // namespace

GatewayReplacement::~GatewayReplacement() {
  *alive_ = false;
  loop_.Cancel(timer_);
}

void GatewayReplacement::Start(const fleet::v1::ReplaceGateway& question, Part part) {
  if (!waiting_.empty()) {
    if (question.take_overs() != take_overs_ || waiting_.size() >= kMostWaiting) {
      return part(Failure(grpc::StatusCode::RESOURCE_EXHAUSTED,
                          "the gateway is being replaced for another question"));
    }
    return waiting_.push_back(std::move(part));
  }
  waiting_.push_back(std::move(part));
  take_overs_ = question.take_overs();
  limit_ = Seconds(
      std::clamp<int64_t>(TimeUtil::DurationToSeconds(question.time_limit()), 1, kLongestSeconds));
  deadline_ = ControlLoop::Now() + limit_;
  started_ns_ = 0;
  ordered_ = false;
  report_.Clear();
  problem_.clear();
  Look();
}

void GatewayReplacement::Look() {
  timer_ = 0;
  if (ControlLoop::Now() >= deadline_ && report_.reason().empty()) {
    return Fail("deadline", "no result within " + std::to_string(limit_.ns / 1'000'000'000) + " s" +
                                (problem_.empty() ? "" : ": " + problem_));
  }
  TunnelQuestion question;
  question.mutable_get_status();
  *question.mutable_deadline() =
      TimeUtil::GetCurrentTime() + TimeUtil::SecondsToDuration(kLookSeconds);
  gateway_.Ask(question, [this, alive = alive_](const TunnelAnswer& answer) {
    if (*alive && !waiting_.empty()) OnLook(answer);
  });
}

void GatewayReplacement::LookLater() {
  timer_ = loop_.At(ControlLoop::Now() + kLookEvery, [this] { Look(); });
}

void GatewayReplacement::OnLook(const TunnelAnswer& answer) {
  if (answer.code() == 0) return OnStatus(answer.status());
  // A refusal is known without the gateway's status.
  if (!report_.reason().empty()) return Finish();
  problem_ = "the gateway does not answer: " + answer.message();
  LookLater();
}

void GatewayReplacement::OnStatus(const types::v1::GatewayStatus& status) {
  *report_.mutable_after() = status;
  // A refusal is reported with the gateway that goes on.
  if (!report_.reason().empty()) return Finish();
  if (!status.has_take_overs())
    return Fail("unsupported", "version " + status.version() + " cannot be replaced while it runs");
  const uint64_t count = status.take_overs().count();
  const int64_t started_ns = TimeUtil::TimestampToNanoseconds(status.start_time());
  if (count > take_overs_) {
    if (IsReported(status)) report_ = *last_;
    if (status.ready()) return Finish();
    problem_ = "the new gateway is not ready: " + status.not_ready_reason();
    return LookLater();
  }
  if (count < take_overs_ || (started_ns_ != 0 && started_ns != started_ns_))
    return Fail("restarted",
                "the gateway was restarted, and its programs have lost their sessions");
  started_ns_ = started_ns;
  if (ordered_) return LookLater();
  Order();
}

bool GatewayReplacement::IsReported(const types::v1::GatewayStatus& status) const {
  if (!last_.has_value()) return false;
  // A gateway without a predecessor counts from 0 again: the count alone does not name a take-over.
  const types::v1::GatewayStatus& after = last_->after();
  return status.take_overs().count() == take_overs_ + 1 &&
         status.take_overs().count() == after.take_overs().count() &&
         TimeUtil::TimestampToNanoseconds(status.start_time()) ==
             TimeUtil::TimestampToNanoseconds(after.start_time());
}

void GatewayReplacement::Order() {
  spdlog::info("upgrade: the gateway is to be replaced by the installed program");
  gateway_.TakeOver(take_overs_, deadline_ - ControlLoop::Now(),
                    [this, alive = alive_](const TakeOverAnswer& answer) {
                      if (*alive && !waiting_.empty()) OnOrdered(answer);
                    });
}

void GatewayReplacement::OnOrdered(const TakeOverAnswer& answer) {
  const gateway::v1::TakeOverResponse& response = answer.response;
  switch (answer.code) {
    case grpc::StatusCode::OK:
      if (response.refusal() == kBusy) {
        problem_ = response.text();
        return LookLater();
      }
      if (response.refusal().empty()) {
        *report_.mutable_handed_over() = response.handed_over();
        ordered_ = true;
      } else {
        report_.set_refused(true);
        report_.set_reason(response.refusal());
        report_.set_text(response.text());
      }
      return Look();
    case grpc::StatusCode::FAILED_PRECONDITION:  // the number of take-overs has changed
      return LookLater();
    case grpc::StatusCode::UNIMPLEMENTED:
      return Fail("unsupported",
                  "version " + report_.after().version() +
                      " does not take this order: reload its service on the host once");
    default:
      // The old process may have ended before its answer was read.
      ordered_ = true;
      problem_ = "the order has no answer: " + answer.message;
      return LookLater();
  }
}

void GatewayReplacement::Fail(const std::string& reason, const std::string& text) {
  report_.set_reason(reason);
  report_.set_text(text);
  Finish();
}

void GatewayReplacement::Finish() {
  if (report_.reason().empty()) {
    spdlog::info("upgrade: the gateway is now version {}", report_.after().version());
  } else {
    spdlog::warn("upgrade: the gateway was not replaced: {}: {}", report_.reason(), report_.text());
  }
  TunnelAnswer answer;
  *answer.mutable_replacement() = report_;
  if (report_.reason().empty()) last_ = report_;
  const std::vector<Part> waiting = std::exchange(waiting_, {});
  for (const Part& part : waiting) part(answer);
}

}  // namespace rocegw::agent
