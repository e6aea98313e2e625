// SPDX-License-Identifier: Apache-2.0
// State of a session's links for a gateway that takes over (gateway/hand_over/state_stream.h), and
// the links to that gateway's workers.
#include <string>

#include "gateway/hand_over/state_stream.h"
#include "gateway/session/client_memory.h"
#include "gateway/session/hand_over/objects_state.h"
#include "gateway/session/objects/session_quota.h"
#include "gateway/session/services.h"
#include "gateway/session/session_segment.h"
#include "gateway/session/workers/worker_links.h"

namespace rocegw::session {

using hand_over::StateStream;

namespace {

constexpr uint32_t kMostDoorbellPages = 1u << 16;

}  // namespace

void WorkerLinks::Offer(OfferedFds& fds) const {
  for (uint32_t w = 0; w < wake_fds_.size(); ++w)
    fds.push_back({FdKind::kWake, FdName(id_, w), wake_fds_[w].get()});
}

void WorkerLinks::HandOver(StateStream& state, InheritedFds* inherited, bool copies) {
  auto& [id, services, quota, session_segment, memory, doorbells, is_linked, lines, wake_fds] =
      *this;
  (void)id, (void)quota, (void)memory;
  const bool linked = state.Carry(is_linked);
  if (!linked) return;
  const size_t workers = services.workers.worker_count();
  shm::Segment& segment = session_segment.segment();
  HandOverBlock(state, segment, shm::Writer::kDaemon, workers * sizeof(rocegw_worker_line), lines);
  for (uint32_t w = 0; w < workers; ++w) {
    if (state.reading()) {
      wake_fds.push_back(inherited == nullptr ? UniqueFd()
                                              : inherited->Take(FdKind::kWake, FdName(id_, w)));
      state.Require(wake_fds.back().valid(), "descriptor of a session is missing");
    }
    const auto worker = static_cast<WorkerIndex>(w);
    const uint32_t pages = state.Count(doorbells.page_count(worker), kMostDoorbellPages);
    for (uint32_t p = 0; p < pages && state.ok(); ++p) {
      shm::Block page = state.reading() ? shm::Block() : doorbells.page(worker, p);
      HandOverBlock(state, segment, shm::Writer::kClient, sizeof(rocegw_doorbell_page), page);
      if (state.reading()) doorbells.AddPage(worker, page);
    }
  }
  if (state.reading() && state.ok() && copies)
    state.Require(memory_.StartCopier(quota_.pool()).ok(),
                  "the thread that copies to a program cannot be started");
  // A session that was not read needs no worker to close.
  is_linked = state.ok();
}

void WorkerLinks::LinkAgain(const std::function<void(const worker::ControlReply&)>& answered) {
  services_.workers.Broadcast([this](WorkerIndex w) { return LinkOf(w); }, answered);
  for (size_t w = 0; w < services_.workers.worker_count(); ++w) {
    const auto worker = static_cast<WorkerIndex>(w);
    for (uint32_t page = 0; page < doorbells_.page_count(worker); ++page) {
      services_.workers.Send(
          worker,
          worker::AddDoorbellPage{id_, page,
                                  doorbells_.page(worker, page).As<rocegw_doorbell_page>()},
          answered);
    }
  }
}

}  // namespace rocegw::session
