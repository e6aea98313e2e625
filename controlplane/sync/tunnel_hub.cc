// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/tunnel_hub.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <utility>

namespace rocegw::sync {
namespace {

// Value of grpc::StatusCode, which this layer does not include.
constexpr int kCancelled = 1;
constexpr int kDeadlineExceeded = 4;
constexpr int kInternal = 13;
constexpr int kUnavailable = 14;

TunnelResult NoTunnel(const std::string& gateway) {
  return {kUnavailable, "the agent of " + gateway + " is not connected to this controller", {}};
}

}  // namespace

TunnelHub::TunnelHub() : thread_([this] { Run(); }) {}

TunnelHub::~TunnelHub() {
  std::map<uint64_t, Waiting> left;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    left.swap(waiting_);
    for (auto& [name, tunnel] : tunnels_) tunnel.stream->Close(StreamEnd::kClosing);
    wake_.notify_all();
  }
  for (auto& [id, waiting] : left) waiting.done({kUnavailable, "the controller ends", {}});
  thread_.join();
}

std::vector<TunnelHub::Done> TunnelHub::TakeOf(const std::string& gateway) {
  std::vector<Done> orphans;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (at->second.gateway == gateway) {
      orphans.push_back(std::move(at->second.done));
      at = waiting_.erase(at);
    } else {
      ++at;
    }
  }
  return orphans;
}

TunnelHub::StreamId TunnelHub::Attach(const std::string& gateway,
                                      std::shared_ptr<TunnelStream> stream) {
  std::vector<Done> orphans;
  StreamId id = 0;
  {
    const std::lock_guard lock(mutex_);
    Tunnel& tunnel = tunnels_[gateway];
    if (tunnel.stream != nullptr) {
      tunnel.stream->Close(StreamEnd::kSuperseded);
      orphans = TakeOf(gateway);
    }
    id = tunnel.id = ++last_stream_;
    tunnel.stream = std::move(stream);
  }
  for (const Done& done : orphans) done(NoTunnel(gateway));
  return id;
}

const char* TunnelHub::Take(Waiting& waiting, const fleet::v1::TunnelAnswer& answer) {
  if (answer.code() != 0) return nullptr;
  if (waiting.part != nullptr) {
    if (!answer.more()) return nullptr;
    if (waiting.granted == 0) return "the gateway sent more parts than it was asked for";
    --waiting.granted;
    return nullptr;
  }
  waiting.bytes += answer.ByteSizeLong();
  if (waiting.bytes > kMostAnswerBytes) return "the answer is too long";
  waiting.parts.push_back(answer);
  return nullptr;
}

void TunnelHub::OnAnswer(const std::string& gateway, StreamId id,
                         const fleet::v1::TunnelAnswer& answer) {
  Done done;
  std::shared_ptr<Part> part;
  TunnelResult result;
  {
    const std::lock_guard lock(mutex_);
    const auto tunnel = tunnels_.find(gateway);
    if (tunnel == tunnels_.end() || tunnel->second.id != id) return;
    // Too late, or for another gateway's question.
    const auto at = waiting_.find(answer.id());
    if (at == waiting_.end() || at->second.gateway != gateway) return;
    Waiting& waiting = at->second;
    const char* const fault = Take(waiting, answer);
    if (fault == nullptr && answer.code() == 0) part = waiting.part;
    if (fault != nullptr || answer.code() != 0 || !answer.more()) {
      result.code = fault != nullptr ? kInternal : answer.code();
      result.message = fault != nullptr ? fault : answer.message();
      if (result.code == 0) result.parts = std::move(waiting.parts);
      if (fault != nullptr) SendCancel(at->first, gateway);
      done = std::move(waiting.done);
      waiting_.erase(at);
    }
  }
  if (part != nullptr) (*part)(answer);
  if (done) done(std::move(result));
}

void TunnelHub::Detach(const std::string& gateway, StreamId id) {
  std::vector<Done> orphans;
  {
    const std::lock_guard lock(mutex_);
    const auto tunnel = tunnels_.find(gateway);
    if (tunnel == tunnels_.end() || tunnel->second.id != id) return;
    tunnels_.erase(tunnel);
    orphans = TakeOf(gateway);
  }
  for (const Done& done : orphans) done(NoTunnel(gateway));
}

bool TunnelHub::Has(const std::string& gateway) {
  const std::lock_guard lock(mutex_);
  return tunnels_.contains(gateway);
}

void TunnelHub::Ask(const std::string& gateway, fleet::v1::TunnelQuestion question,
                    Clock::time_point deadline, Done done) {
  Waiting waiting{.gateway = gateway, .deadline = deadline, .done = std::move(done)};
  {
    const std::lock_guard lock(mutex_);
    if (Send(question, waiting) != 0) return;
  }
  waiting.done(NoTunnel(gateway));
}

TunnelHub::QuestionId TunnelHub::AskInParts(const std::string& gateway,
                                            fleet::v1::TunnelQuestion question,
                                            Clock::time_point deadline, uint32_t window, Part part,
                                            Done done) {
  Waiting waiting{.gateway = gateway,
                  .deadline = deadline,
                  .done = std::move(done),
                  .part = std::make_shared<Part>(std::move(part)),
                  .granted = window};
  {
    const std::lock_guard lock(mutex_);
    if (const QuestionId id = Send(question, waiting); id != 0) {
      fleet::v1::TunnelQuestion grant;
      grant.set_id(id);
      grant.set_grant(window);
      tunnels_[gateway].stream->Send(grant);
      return id;
    }
  }
  waiting.done(NoTunnel(gateway));
  return 0;
}

TunnelHub::QuestionId TunnelHub::Send(fleet::v1::TunnelQuestion& question, Waiting& waiting) {
  const auto tunnel = tunnels_.find(waiting.gateway);
  if (tunnel == tunnels_.end() || stopping_) return 0;
  question.set_id(++last_question_);
  *question.mutable_deadline() = google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
      std::chrono::duration_cast<std::chrono::nanoseconds>(waiting.deadline.time_since_epoch())
          .count());
  waiting_[question.id()] = std::move(waiting);
  tunnel->second.stream->Send(question);
  wake_.notify_all();
  return question.id();
}

void TunnelHub::Grant(QuestionId question, uint32_t parts) {
  const std::lock_guard lock(mutex_);
  const auto at = waiting_.find(question);
  if (at == waiting_.end()) return;
  at->second.granted += parts;
  const auto tunnel = tunnels_.find(at->second.gateway);
  if (tunnel == tunnels_.end()) return;
  fleet::v1::TunnelQuestion grant;
  grant.set_id(question);
  grant.set_grant(parts);
  tunnel->second.stream->Send(grant);
}

void TunnelHub::SendCancel(QuestionId question, const std::string& gateway) {
  const auto tunnel = tunnels_.find(gateway);
  if (tunnel == tunnels_.end()) return;
  fleet::v1::TunnelQuestion cancel;
  cancel.set_id(question);
  cancel.set_cancel(true);
  tunnel->second.stream->Send(cancel);
}

void TunnelHub::Cancel(QuestionId question) {
  Done done;
  {
    const std::lock_guard lock(mutex_);
    const auto at = waiting_.find(question);
    if (at == waiting_.end()) return;
    SendCancel(question, at->second.gateway);
    done = std::move(at->second.done);
    waiting_.erase(at);
  }
  done({kCancelled, "nobody waits for the answer any more", {}});
}

void TunnelHub::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Clock::time_point now = Clock::now();
    Clock::time_point next = now + std::chrono::hours(1);
    std::vector<Done> late;
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      if (at->second.deadline > now) {
        next = std::min(next, at->second.deadline);
        ++at;
        continue;
      }
      SendCancel(at->first, at->second.gateway);
      late.push_back(std::move(at->second.done));
      at = waiting_.erase(at);
    }
    if (!late.empty()) {
      lock.unlock();
      for (const Done& done : late) {
        done({kDeadlineExceeded, "the gateway did not answer in time", {}});
      }
      lock.lock();
      continue;
    }
    wake_.wait_until(lock, next);
  }
}

}  // namespace rocegw::sync
