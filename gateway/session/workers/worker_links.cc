// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/workers/worker_links.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "gateway/base/invariant.h"
#include "gateway/session/client_memory.h"
#include "gateway/session/object_bytes.h"
#include "gateway/session/objects/session_quota.h"
#include "gateway/session/services.h"
#include "gateway/session/session_segment.h"

namespace rocegw::session {

WorkerLinks::WorkerLinks(SessionId id, Services& services, SessionQuota& quota,
                         SessionSegment& segment, ClientMemory& memory)
    : id_(id),
      services_(services),
      quota_(quota),
      segment_(segment),
      memory_(memory),
      doorbells_(services.workers.worker_count()) {}

WorkerLinks::~WorkerLinks() { (void)ROCEGW_INVARIANT(!linked_, "session-destroyed-after-its-end"); }

worker::LinkSession WorkerLinks::LinkOf(WorkerIndex worker) const {
  worker::LinkSession link;
  link.session = id_;
  link.space = memory_.memory();
  link.copier = memory_.copier();
  link.line = lines_.As<rocegw_worker_line>() + worker;
  link.wake_fd = wake_fds_[worker].get();
  link.share = &quota_.pool().share();
  link.slot = quota_.slot().get();
  return link;
}

Status WorkerLinks::Link(std::function<void(int error)> answered) {
  const size_t workers = services_.workers.worker_count();
  auto lines = segment_.Allocate(shm::Writer::kDaemon, workers * sizeof(rocegw_worker_line));
  if (!lines.ok()) return lines.status();
  std::vector<UniqueFd> wake_fds;
  for (size_t w = 0; w < workers; ++w) {
    wake_fds.emplace_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_fds.back().valid()) {
      const int error = errno;
      segment_.Free(*lines);
      return Status(error, "no descriptor to wake a worker by");
    }
  }
  if (Status started = memory_.StartCopierIfNeeded(quota_.pool()); !started.ok()) {
    segment_.Free(*lines);
    return started;
  }
  lines_ = *lines;
  wake_fds_ = std::move(wake_fds);
  linked_ = true;
  services_.workers.Broadcast([this](WorkerIndex w) { return LinkOf(w); },
                              [answered = std::move(answered)](const worker::ControlReply& reply) {
                                answered(reply.error);
                              });
  return OkStatus();
}

void WorkerLinks::AnnounceTo(MessageSink& sink) const {
  for (size_t w = 0; w < wake_fds_.size(); ++w) {
    rocegw_worker_announcement announcement{};
    announcement.header.type = ROCEGW_MSG_WORKER;
    announcement.header.length = sizeof announcement;
    announcement.worker = static_cast<uint32_t>(w);
    announcement.line = lines_.location();
    announcement.line.offset += w * sizeof(rocegw_worker_line);
    announcement.line.length = sizeof(rocegw_worker_line);
    sink.Send(BytesOf(announcement), wake_fds_[w].get());
  }
}

Status WorkerLinks::AddDoorbellPage(WorkerIndex worker) {
  auto memory = segment_.Allocate(shm::Writer::kClient, sizeof(rocegw_doorbell_page));
  if (!memory.ok()) return memory.status();
  worker::AddDoorbellPage page;
  page.session = id_;
  page.page = doorbells_.AddPage(worker, *memory);
  page.memory = memory->As<rocegw_doorbell_page>();
  services_.workers.Tell(worker, page);
  return OkStatus();
}

void WorkerLinks::Unlink(const Join& join) {
  if (!linked_) return;
  services_.workers.Broadcast([this](WorkerIndex) { return worker::UnlinkSession{id_}; },
                              [join](const worker::ControlReply&) {});
}

void WorkerLinks::Release() {
  linked_ = false;
  wake_fds_.clear();
}

}  // namespace rocegw::session
