// SPDX-License-Identifier: Apache-2.0
// Replacement of a virtual host's workers by fresh ones (Worker::HandOver).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "gateway/base/mix.h"
#include "gateway/hand_over/state_stream.h"
#include "tests/sim/host/host.h"

namespace rocegw::sim {

using hand_over::StateStream;
using hand_over::StateVersions;

void Host::Remember(One& one, const worker::ControlMessage& message) {
  using namespace worker;  // NOLINT(google-build-using-namespace)
  const auto forget = [&](auto matches) {
    std::erase_if(one.linked, [&](const ControlMessage& kept) {
      return std::visit([&](const auto& body) { return matches(body); }, kept.body);
    });
  };
  if (const auto* const qp = std::get_if<UnlinkQp>(&message.body)) {
    forget([&](const auto& body) {
      if constexpr (requires { body.config.qpn; }) return body.config.qpn == qp->qpn;
      return false;
    });
  } else if (const auto* const cq = std::get_if<UnlinkCq>(&message.body)) {
    forget([&](const auto& body) {
      if constexpr (requires { body.config.worker_slot; })
        return body.config.cq_handle == cq->cq_handle;
      return false;
    });
  }
  const bool links = std::visit(
      [](const auto& body) {
        using Body = std::decay_t<decltype(body)>;
        return std::is_same_v<Body, LinkSession> || std::is_same_v<Body, AddDoorbellPage> ||
               std::is_same_v<Body, LinkRegion> || std::is_same_v<Body, LinkCq> ||
               std::is_same_v<Body, LinkSrq> || std::is_same_v<Body, LinkQp> ||
               std::is_same_v<Body, LinkPeer> || std::is_same_v<Body, LinkGroup> ||
               std::is_same_v<Body, UseChannels> || std::is_same_v<Body, UseKeys>;
      },
      message.body);
  if (links) one.linked.push_back(message);
}

// Links a fresh worker with the objects of the old one, as its control thread does.
void Host::LinkFresh(size_t index, worker::Worker& fresh) {
  One& one = *workers_[index];
  for (worker::ControlMessage message : one.linked) {
    message.cookie = ++cookie_;
    // A gateway that takes over has a secret of its own.
    if (auto* const channels = std::get_if<worker::UseChannels>(&message.body))
      channels->options.secret = {Mix(replacements_ + 1), Mix(index + number())};
    if (!one.link.to_worker.Push(std::move(message))) std::abort();
    while (fresh.Prepare(network_.now())) {
    }
    worker::WorkerMessage answer;
    const bool answered = one.link.to_control.Pop(answer);
    const auto* const reply = std::get_if<worker::ControlReply>(&answer.body);
    if (!answered || reply == nullptr || reply->error != 0) {
      std::fprintf(stderr, "virtual host: a fresh worker was not linked\n");
      std::abort();
    }
  }
}

bool Host::Replace(size_t index) {
  One& one = *workers_[index];
  TakeNotices(one);
  std::vector<uint8_t> bytes;
  const StateVersions versions;
  StateStream out(bytes, network_.now(), versions);
  one.worker->HandOver(out);
  const uint64_t sent = one.counters->tx_packets.Read();
  auto old_counters = std::exchange(one.counters, std::make_unique<metrics::WorkerCounters>());
  std::unique_ptr<worker::Worker> fresh = MakeWorker(index);
  LinkFresh(index, *fresh);
  StateStream in(bytes, network_.now());
  fresh->HandOver(in);
  const char* failure = out.ok() ? in.failure() : out.failure();
  if (one.engine != nullptr && one.engine->in_flight() != 0) failure = "copies are in flight";
  if (failure == nullptr && !in.at_end()) failure = "state is longer than what was read";
  if (failure == nullptr && one.counters->tx_packets.Read() != sent) failure = "a counter differs";
  if (failure != nullptr && replacement_failure_.empty()) replacement_failure_ = failure;
  if (failure == nullptr) {
    one.worker = std::move(fresh);
  } else {
    fresh.reset();
    one.counters = std::move(old_counters);
  }
  return failure == nullptr;
}

void Host::ReplaceWorkers() {
  if (replacing_) return;
  replacing_ = true;
  for (size_t index = 0; index < workers_.size(); ++index) {
    workers_[index]->rests = false;
    Schedule(index, network_.now());
  }
}

// Replaces the workers once all of them rest, and lets the new ones begin.
void Host::ReplaceResting() {
  // Packets that one worker handed over to another are taken by the other before it rests.
  if (!std::ranges::all_of(workers_, [](const auto& one) { return one->rests; })) return;
  replacing_ = false;
  for (size_t index = 0; index < workers_.size(); ++index) {
    if (!Replace(index)) return;
    Schedule(index, network_.now());
  }
  ++replacements_;
}

}  // namespace rocegw::sim
