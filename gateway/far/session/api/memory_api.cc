// SPDX-License-Identifier: Apache-2.0
// The calls of rocegw_memory.h.
#include <cerrno>
#include <memory>
#include <utility>

#include "gateway/far/session/api/rocegw_memory.h"
#include "gateway/far/session/api/session_handle.h"

using rocegw::far::CheckOptions;
using rocegw::far::CopyStatistics;
using rocegw::far::Direction;
using rocegw::far::Explain;
using rocegw::far::Session;
using rocegw::far::WrittenBytes;

int rocegw_memory_open(const rocegw_memory_options* options, size_t options_size,
                       rocegw_memory_session** session, char* why, size_t why_size) {
  const auto settings = CheckOptions(*options, options_size);
  if (!settings.ok()) return Explain(settings.status(), why, why_size);
  auto opened = Session::Open(settings.value());
  if (!opened.ok()) return Explain(opened.status(), why, why_size);
  *session = new rocegw_memory_session{std::move(opened.value())};
  return 0;
}

void rocegw_memory_close(rocegw_memory_session* session) { delete session; }

uint64_t rocegw_memory_size(const rocegw_memory_session* session) {
  return session->session->dispatcher().size();
}

int rocegw_memory_read(rocegw_memory_session* session, uint64_t offset, void* buffer, size_t length,
                       rocegw_memory_done done, void* argument) {
  return session->session->dispatcher().Submit(
      Direction::kRead, offset, static_cast<uint8_t*>(buffer), length, done, argument);
}

int rocegw_memory_write(rocegw_memory_session* session, uint64_t offset, const void* buffer,
                        size_t length, rocegw_memory_done done, void* argument) {
  return session->session->dispatcher().Submit(Direction::kWrite, offset, WrittenBytes(buffer),
                                               length, done, argument);
}

int rocegw_memory_read_wait(rocegw_memory_session* session, uint64_t offset, void* buffer,
                            size_t length) {
  return session->session->dispatcher().SubmitAndWait(Direction::kRead, offset,
                                                      static_cast<uint8_t*>(buffer), length);
}

int rocegw_memory_write_wait(rocegw_memory_session* session, uint64_t offset, const void* buffer,
                             size_t length) {
  return session->session->dispatcher().SubmitAndWait(Direction::kWrite, offset,
                                                      WrittenBytes(buffer), length);
}

void rocegw_memory_flush(rocegw_memory_session* session, rocegw_memory_done done, void* argument) {
  session->session->dispatcher().Flush(done, argument);
}

int rocegw_memory_flush_wait(rocegw_memory_session* session) {
  return session->session->dispatcher().FlushAndWait();
}

void* rocegw_memory_alloc(rocegw_memory_session* session, size_t bytes) {
  return session->session->dispatcher().Allocate(bytes);
}

void rocegw_memory_free(rocegw_memory_session* session, void* memory) {
  session->session->dispatcher().Free(memory);
}

void rocegw_memory_set_window(rocegw_memory_session* session, rocegw_memory_window window,
                              void* argument) {
  session->session->dispatcher().SetWindow(window, argument);
}

void rocegw_memory_get_statistics(rocegw_memory_session* session,
                                  rocegw_memory_statistics* statistics, size_t statistics_size) {
  rocegw_memory_statistics known{};
  session->session->AddStatistics(known);
  CopyStatistics(known, statistics, statistics_size);
}
