// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/unit/client/daemon/fake_connection.h"
#include "tests/unit/client/daemon/fake_daemon.h"

namespace rocegw::testing {
namespace {

rocegw_device_reply DescribeDevice(uint32_t index, const FakeOptions& options) {
  rocegw_device_reply reply{};
  snprintf(reply.name, sizeof reply.name, "rocegw%u", index);
  snprintf(reply.interface, sizeof reply.interface, "eth%u", index);
  snprintf(reply.firmware, sizeof reply.firmware, "0.1.0-fake");
  reply.node_guid = 0x0100fffe00c00002ULL + index;
  reply.max_mr_size = uint64_t{1} << 40;
  reply.interface_index = 7 + index;
  reply.vendor_id = 0x00c0ff;
  reply.vendor_part_id = 1;
  reply.hardware_version = 1;
  reply.max_qp = 1024;
  reply.max_qp_wr = 4096;
  reply.max_sge = 16;
  reply.max_inline = 256;
  reply.max_cq = 512;
  reply.max_cqe = 1 << 16;
  reply.max_mr = 4096;
  reply.max_mw = 128;
  reply.max_pd = 256;
  reply.max_ah = 1 << 20;
  reply.max_rd_atomic = 16;
  reply.max_message = 1u << 30;
  reply.port_state = 4;
  reply.max_mtu = 5;
  reply.active_mtu = 3;
  reply.local_ack_delay = 15;
  reply.active_width = 2;
  reply.active_speed = 32;
  reply.gid_table_length = 16;
  if (options.placement) reply.features |= ROCEGW_DEVICE_PLACEMENT;
  return reply;
}

}  // namespace

std::vector<uint8_t> FakeDaemon::Respond(Connection& connection, const RecordedRequest& request,
                                         int* fd) {
  const uint32_t object = request.As<rocegw_object_request>().handle;
  switch (request.type) {
    case ROCEGW_MSG_HELLO: {
      rocegw_hello_reply reply{};
      reply.major = options_.major;
      reply.minor = options_.minor;
      reply.session = static_cast<uint32_t>(accepted_);
      reply.worker_count = options_.workers;
      reply.device_count = options_.devices;
      reply.flags = options_.welcome_flags;
      if (options_.sysfs) {
        snprintf(reply.sysfs_root, sizeof reply.sysfs_root, "%s/sys", directory_.c_str());
      }
      if ((reply.flags & ROCEGW_WELCOME_REMAP) != 0) {
        *fd = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
      }
      return Bytes(reply);
    }
    case ROCEGW_MSG_CREATE_REGION:
      return MakeRegion(request, fd);
    case ROCEGW_MSG_IMPORT_DEVICE:
    case ROCEGW_MSG_IMPORT_REGION: {
      rocegw_object_reply reply{};
      reply.handle = next_handle_++;
      return Bytes(reply);
    }
    case ROCEGW_MSG_DESTROY_REGION:
      DestroyRegion(object);
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_QUERY_DEVICE:
      return Bytes(DescribeDevice(request.As<rocegw_query_device>().device, options_));
    case ROCEGW_MSG_QUERY_GIDS: {
      const auto asked = request.As<rocegw_query_gids>();
      rocegw_gids_reply reply{};
      // Indices 0, 2, 4 and so on: tables have holes.
      for (uint32_t i = 0; i < options_.gids; ++i) {
        const uint32_t index = 2 * i;
        if (index < asked.first) continue;
        rocegw_gid_entry& entry = reply.entry[reply.count++];
        entry.index = index;
        entry.interface_index = 7 + asked.device;
        entry.gid[10] = entry.gid[11] = 0xff;
        entry.gid[12] = 10;
        entry.gid[15] = static_cast<uint8_t>(1 + i);
      }
      return Bytes(reply);
    }
    case ROCEGW_MSG_OPEN_CONTEXT:
    case ROCEGW_MSG_CREATE_CHANNEL:
    case ROCEGW_MSG_CM_CREATE_CHANNEL:
    case ROCEGW_MSG_ALLOC_PD:
      return MakeObject(connection, request, fd);
    case ROCEGW_MSG_REG_MR: {
      rocegw_mr_reply reply{};
      reply.handle = next_handle_++;
      reply.lkey = next_key_;
      reply.rkey = next_key_;
      key_of_[reply.handle] = next_key_;
      next_key_ += 0x100;
      return Bytes(reply);
    }
    case ROCEGW_MSG_REREG_MR: {
      rocegw_mr_reply reply{};
      reply.handle = request.As<rocegw_rereg_mr>().mr;
      reply.lkey = reply.rkey = key_of_[reply.handle];
      return Bytes(reply);
    }
    case ROCEGW_MSG_TAKE_AHS: {
      rocegw_ahs_reply reply{};
      reply.count = 1;
      return Bytes(reply);
    }
    case ROCEGW_MSG_GIVE_AHS:
      return Bytes(rocegw_reply{});
    case ROCEGW_MSG_CREATE_CQ:
      return MakeCq(connection, request);
    case ROCEGW_MSG_RESIZE_CQ:
      return ResizeCq(connection, request);
    case ROCEGW_MSG_OPEN_XRCD: {
      rocegw_object_reply reply{};
      reply.handle = next_handle_++;
      return Bytes(reply);
    }
    case ROCEGW_MSG_CLOSE_XRCD:
    case ROCEGW_MSG_MODERATE_CQ:
    case ROCEGW_MSG_ATTACH_MULTICAST:
    case ROCEGW_MSG_DETACH_MULTICAST:
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_CREATE_QP:
      return MakeQp(connection, request);
    case ROCEGW_MSG_MODIFY_QP: {
      const auto asked = request.As<rocegw_modify_qp>();
      for (auto& [qpn, qp] : qps_) {
        if (qp.handle != asked.qp) continue;
        qp.attr = asked.attr;
        if ((asked.attr_mask & 1) == 0) continue;
        qp.status->state = asked.attr.qp_state;
        if (asked.attr.qp_state == 0) {  // reset: posted requests are dropped
          __atomic_store_n(&qp.status->sq_released, qp.control->sq_producer, __ATOMIC_RELEASE);
          __atomic_store_n(&qp.status->rq_released, qp.control->rq_producer, __ATOMIC_RELEASE);
        }
      }
      return Bytes(rocegw_object_reply{});
    }
    case ROCEGW_MSG_QUERY_QP: {
      rocegw_query_qp_reply reply{};
      for (auto& [qpn, qp] : qps_) {
        if (qp.handle == object) reply.attr = qp.attr;
      }
      return Bytes(reply);
    }
    case ROCEGW_MSG_CREATE_SRQ:
      return MakeSrq(connection, request);
    case ROCEGW_MSG_MODIFY_SRQ: {
      const auto asked = request.As<rocegw_modify_srq>();
      if ((asked.mask & ROCEGW_SRQ_LIMIT) != 0) srqs_[asked.srq].limit = asked.limit;
      if ((asked.mask & ROCEGW_SRQ_MAX_WR) != 0) return ResizeSrq(connection, request);
      return Bytes(rocegw_object_reply{});
    }
    case ROCEGW_MSG_QUERY_SRQ: {
      const FakeSrq& srq = srqs_[object];
      rocegw_query_srq_reply reply{};
      reply.max_wr = srq.reply.entries;
      reply.max_sge = srq.reply.max_sge;
      reply.limit = srq.limit;
      return Bytes(reply);
    }
    case ROCEGW_MSG_DESTROY_SRQ:
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_CREATE_PEER: {
      rocegw_object_reply reply{};
      reply.handle = ++last_peer_;
      return Bytes(reply);
    }
    case ROCEGW_MSG_CREATE_GROUP: {
      rocegw_group_reply reply{};
      reply.handle = ++last_peer_;
      reply.number = 0x777;
      return Bytes(reply);
    }
    case ROCEGW_MSG_QUERY_EP: {
      rocegw_query_ep_reply reply{};
      reply.state = ROCEGW_EP_EXCEPTION;
      reply.on_failure = ROCEGW_EP_SUSPEND;
      reply.requests = 1;
      reply.messages = 2;
      reply.failures = uint64_t{1} << 33;
      return Bytes(reply);
    }
    case ROCEGW_MSG_MODIFY_EP:
    case ROCEGW_MSG_DESTROY_GROUP:
    case ROCEGW_MSG_DESTROY_PEER:
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_QUERY_ECE: {
      rocegw_ece_reply reply{};
      reply.vendor_id = 0x02BADD;
      reply.options = 7;
      return Bytes(reply);
    }
    case ROCEGW_MSG_SET_ECE: {
      const auto asked = request.As<rocegw_set_ece>();
      rocegw_ece_reply reply{};
      reply.vendor_id = asked.vendor_id;
      reply.options = asked.options & 7;
      return Bytes(reply);
    }
    case ROCEGW_MSG_DESTROY_CHANNEL:
    case ROCEGW_MSG_CLOSE_CONTEXT:
    case ROCEGW_MSG_CM_DESTROY_CHANNEL:
      if (const auto event = events_.find(object); event != events_.end()) {
        close(event->second);
        events_.erase(event);
      }
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_DESTROY_CQ:
      cqs_.erase(object);
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_DESTROY_QP:
      std::erase_if(qps_, [&](const auto& entry) { return entry.second.handle == object; });
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_CM_CREATE_ID: {
      rocegw_object_reply reply{};
      reply.handle = next_handle_++;
      return Bytes(reply);
    }
    case ROCEGW_MSG_DEALLOC_PD:
    case ROCEGW_MSG_DEREG_MR:
      return Bytes(rocegw_object_reply{});
    default: {
      rocegw_reply reply{};
      reply.error = request.type >= ROCEGW_MSG_CM_CREATE_CHANNEL && request.type < ROCEGW_MSG_CHUNK
                        ? 0
                        : ENOSYS;
      return Bytes(reply);
    }
  }
}

}  // namespace rocegw::testing
