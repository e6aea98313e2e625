// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/queues/ah_credits.h"

#include "gateway/client/session/session.h"

namespace rocegw::client {

namespace {

constexpr uint32_t kMinorThatCounts = 13;
constexpr uint32_t kWanted = 64;

bool Counts(Session* session) { return session->welcome().minor >= kMinorThatCounts; }

}  // namespace

int AhCredits::Take(Session* session) {
  if (!Counts(session)) return 0;
  {
    SpinGuard guard(lock_);
    if (spare_ > 0) {
      --spare_;
      return 0;
    }
  }
  rocegw_ahs request = {};
  request.count = kWanted;
  rocegw_ahs_reply reply;
  const int error = session->Call(ROCEGW_MSG_TAKE_AHS, &request, &reply);
  if (error != 0) return error;
  SpinGuard guard(lock_);
  batch_ = reply.count;
  spare_ += reply.count - 1;
  return 0;
}

// Keeps up to two grants: a program that creates and destroys one handle repeatedly need not ask.
// If they are granted one by one, other programs wait for this one.
void AhCredits::Give(Session* session) {
  if (!Counts(session)) return;
  rocegw_ahs request = {};
  {
    SpinGuard guard(lock_);
    ++spare_;
    const uint32_t kept = batch_ > 1 ? 2 * batch_ : 0;
    if (spare_ <= kept) return;
    request.count = spare_ - kept / 2;
    spare_ -= request.count;
  }
  rocegw_reply reply;
  session->Call(ROCEGW_MSG_GIVE_AHS, &request, &reply);
}

}  // namespace rocegw::client
