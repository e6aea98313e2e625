// SPDX-License-Identifier: Apache-2.0
// Opening of a device: creates the context with its table of operations, through which programs
// make the calls that are inline in verbs.h.
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/device/device.h"
#include "gateway/client/device/domains.h"
#include "gateway/client/device/extended.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/device/query.h"
#include "gateway/client/device/refusals.h"
#include "gateway/client/memory/on_demand.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/real.h"
#include "gateway/client/queues/completion_queue.h"
#include "gateway/client/queues/queue_pair.h"
#include "gateway/client/queues/xrc.h"

namespace rocegw::client {

namespace {

void FillOperations(verbs_context* verbs) {
  // Size of the structure in the compiled header. The structure grows at its front, so older and
  // newer programs find members at the expected distance from its end.
  verbs->sz = sizeof(*verbs);
  verbs->query_port = &QueryPort;
  verbs->query_device_ex = &QueryDeviceExtended;
  verbs->query_rt_values = &QueryClock;
  verbs->advise_mr = &AdviseMr;
  verbs->create_qp_ex = &CreateQpExtended;
  verbs->create_cq_ex = &CreateCqExtended;
  verbs->modify_cq = &ModifyCq;
  verbs->open_xrcd = &OpenXrcd;
  verbs->close_xrcd = &CloseXrcd;
  verbs->create_srq_ex = &CreateSrqExtended;
  verbs->get_srq_num = &GetSrqNumber;
  verbs->open_qp = &OpenQp;
  verbs->alloc_td = &AllocThreadDomain;
  verbs->dealloc_td = &DeallocThreadDomain;
  verbs->alloc_parent_domain = &AllocParentDomain;
  verbs->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  verbs->context.ops._compat_query_device = &ibv_query_device;
  verbs->context.ops._compat_query_port = &ibv_query_port;
  verbs->context.ops.poll_cq = &PollCq;
  verbs->context.ops.req_notify_cq = &RequestNotify;
  verbs->context.ops.post_send = &PostSendOnQp;
  verbs->context.ops.post_recv = &PostReceiveOnQp;
  verbs->context.ops.post_srq_recv = &PostReceiveOnSrq;
  verbs->context.ops.alloc_mw = &AllocMw;
  verbs->context.ops.bind_mw = &BindMw;
  verbs->context.ops.dealloc_mw = &DeallocMw;
}

ibv_context* Open(Session* session, Device* device) {
  Device* devices[kMaxDevices];
  const int count = ListDevices(session, devices);
  if (count < 0) {
    errno = -count;
    return nullptr;
  }
  bool present = false;
  for (int i = 0; i < count && !present; ++i) present = devices[i] == device;
  rocegw_device_reply limits;
  const int query_error = present ? QueryDevice(session, device->index, &limits) : ENODEV;
  auto* context = MakeObject<Context>();
  if (query_error != 0 || context == nullptr) {
    free(context);
    errno = query_error != 0 ? query_error : ENOMEM;
    return nullptr;
  }
  rocegw_open_context request = {};
  request.device = device->index;
  int events = -1;
  const int error =
      session->CallForEvents(ROCEGW_MSG_OPEN_CONTEXT, &request, &context->handle, &events);
  if (error != 0) {
    free(context);
    errno = error;
    return nullptr;
  }
  context->session = session;
  context->device = device;
  context->max_message = limits.max_message;
  context->placement = (limits.features & ROCEGW_DEVICE_PLACEMENT) != 0;
  FillOperations(&context->verbs);
  ibv_context& ibv = context->verbs.context;
  ibv.device = &device->ibv;
  ibv.async_fd = events;
  // Unused, but programs expect a descriptor that they can duplicate.
  ibv.cmd_fd = eventfd(0, EFD_CLOEXEC);
  ibv.num_comp_vectors =
      session->welcome().worker_count != 0 ? static_cast<int>(session->welcome().worker_count) : 1;
  context->events = Own(ibv.async_fd);
  context->commands = Own(ibv.cmd_fd);
  pthread_mutex_init(&ibv.mutex, nullptr);
  session->AddReference();
  return &ibv;
}

}  // namespace

ibv_context* OpenOurDevice(Device* device) {
  Session* session = Session::Acquire();
  if (session == nullptr) return nullptr;
  ibv_context* context = Open(session, device);
  const int saved = errno;
  session->Release();
  errno = saved;
  return context;
}

}  // namespace rocegw::client

using rocegw::client::Context;
using rocegw::client::FromIbv;
using rocegw::client::IsOurs;

ROCEGW_EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  if (!IsOurs(device)) return ROCEGW_REAL(ibv_open_device)(device);
  return rocegw::client::OpenOurDevice(FromIbv(device));
}

ROCEGW_EXPORT int ibv_close_device(ibv_context* ibv) {
  if (!IsOurs(ibv)) return ROCEGW_REAL(ibv_close_device)(ibv);
  Context* context = FromIbv(ibv);
  const int error = context->session->CallDestroy(ROCEGW_MSG_CLOSE_CONTEXT, context->handle);
  if (error != 0) {
    errno = error;
    return -1;
  }
  CloseOwn(&context->events);
  CloseOwn(&context->commands);
  pthread_mutex_destroy(&ibv->mutex);
  context->session->Release();
  free(context);
  return 0;
}

// Sharing objects between processes needs a daemon that passes them on; ours ties them to one
// process. Command descriptors of other devices are files of /dev/infiniband.
ROCEGW_EXPORT ibv_context* ibv_import_device(int cmd_fd) {
  const auto real = ROCEGW_REAL(ibv_import_device);
  struct statx about = {};
  const bool ours =
      rocegw::client::RawSyscall(SYS_statx, cmd_fd, "", AT_EMPTY_PATH, STATX_TYPE, &about) == 0 &&
      !S_ISCHR(about.stx_mode);
  if (real != nullptr && !ours) return real(cmd_fd);
  errno = rocegw::client::refusal::ibv_import_device;
  return nullptr;
}
