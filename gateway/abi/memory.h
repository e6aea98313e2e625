/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages about memory regions. Part of rocegw_abi.h.
 */
#ifndef ROCEGW_ABI_MEMORY_H
#define ROCEGW_ABI_MEMORY_H

#include "gateway/abi/messages.h"

struct rocegw_reg_mr {
  struct rocegw_request header;
  uint32_t pd;
  uint32_t access; /* enum ibv_access_flags */
  uint64_t address;
  uint64_t length;
  uint64_t iova;   /* the address that peers and lkey users name */
  uint32_t region; /* remapped region that holds some of the range, 0 = none; the rest of it (pages
                      that the range has only a part of) is reached as without a region */
  uint32_t kept;   /* region 0: enum rocegw_kept, for people who look at it */
  uint64_t region_offset; /* of `address` in the region; wraps when the region begins later */
};

/* Since minor 11: what the region is from now on, as in rocegw_reg_mr; its handle and its keys
 * stay. With an error it is as it was. */
struct rocegw_rereg_mr {
  struct rocegw_request header;
  uint32_t mr;
  uint32_t pd; /* of the same context */
  uint32_t access;
  uint32_t region;
  uint64_t address;
  uint64_t length;
  uint64_t iova;
  uint64_t region_offset;
  uint32_t kept;
  uint32_t reserved;
};

/* Why the library left memory where it is. */
enum rocegw_kept {
  ROCEGW_KEPT_UNSAID = 0,
  ROCEGW_KEPT_POOL = 1,
  ROCEGW_KEPT_PROCESS = 2,
  ROCEGW_KEPT_SMALL = 3,
  ROCEGW_KEPT_MAPPING = 4,
  ROCEGW_KEPT_STACK = 5,
  ROCEGW_KEPT_ADVISED = 6,
  ROCEGW_KEPT_DEVICES = 7,
  ROCEGW_KEPT_IN_USE = 8,
  ROCEGW_KEPT_SHORT_LIVED = 9,
  ROCEGW_KEPT_LARGE_PROCESS = 10,
  ROCEGW_KEPT_FILE_LIMIT = 11,
  ROCEGW_KEPT_NO_USERFAULTFD = 12,
  ROCEGW_KEPT_REFUSED = 13,
  ROCEGW_KEPT_FAILED = 14,
  ROCEGW_KEPT_UNHOOKED = 15,
  ROCEGW_KEPT_COUNT = 16
};
static inline const char* rocegw_kept_text(uint32_t kept) {
  switch (kept) {
    case ROCEGW_KEPT_POOL:
      return "its pool does not allow remapping";
    case ROCEGW_KEPT_PROCESS:
      return "its process says ROCEGW_REMAP=never";
    case ROCEGW_KEPT_SMALL:
      return "it is smaller than what is worth moving";
    case ROCEGW_KEPT_MAPPING:
      return "it is not private, anonymous, writable memory of ordinary pages";
    case ROCEGW_KEPT_STACK:
      return "it may be part of a stack";
    case ROCEGW_KEPT_ADVISED:
      return "its mapping has properties that would be lost (locked, huge pages, not for children "
             "or "
             "core dumps, protection key, memory policy)";
    case ROCEGW_KEPT_DEVICES:
      return "its process has a device or an io_uring open that may hold the pages";
    case ROCEGW_KEPT_IN_USE:
      return "another registration of its process holds some of these pages";
    case ROCEGW_KEPT_SHORT_LIVED:
      return "registrations of its process do not last long enough";
    case ROCEGW_KEPT_LARGE_PROCESS:
      return "its process is too large to look up the properties of the mapping";
    case ROCEGW_KEPT_FILE_LIMIT:
      return "its process may not write files of that size";
    case ROCEGW_KEPT_NO_USERFAULTFD:
      return "its process may not have a full userfaultfd, or the kernel is older than 6.4";
    case ROCEGW_KEPT_REFUSED:
      return "the gateway refused a region (a limit, or strict memory accounting)";
    case ROCEGW_KEPT_FAILED:
      return "the kernel refused to move it";
    case ROCEGW_KEPT_UNHOOKED:
      return "the library is not preloaded and does not see what its process does with memory";
    default:
      return "not remapped by the library";
  }
}
enum rocegw_memory_way {
  ROCEGW_MEMORY_CROSS = 0,
  ROCEGW_MEMORY_DESCRIPTOR = 1,
  ROCEGW_MEMORY_REMAPPED = 2,
  ROCEGW_MEMORY_IN_PROCESS = 3, /* the gateway is part of the process */
  ROCEGW_MEMORY_DMA_BUF = 4,    /* a dma-buf that both have mapped */
  ROCEGW_MEMORY_DEVICE = 5      /* memory of a GPU; copies by the device */
};
struct rocegw_mr_reply {
  struct rocegw_reply header;
  uint32_t handle;
  uint32_t lkey;
  uint32_t rkey;
  uint32_t way; /* enum rocegw_memory_way */
};

/* A memory window: a key for a part of a region that is bound and invalidated by work requests. */
struct rocegw_alloc_mw {
  struct rocegw_request header;
  uint32_t pd;
  uint32_t type; /* enum ibv_mw_type */
};
struct rocegw_mw_reply {
  struct rocegw_reply header;
  uint32_t handle;
  uint32_t rkey; /* bound to nothing */
};

struct rocegw_create_region {
  struct rocegw_request header;
  uint64_t address; /* page aligned */
  uint64_t length;
};

/* Since minor 15. The client has mapped the first `length` bytes of the dma-buf at `address`. A
 * registration in such a region must lie in it completely. */
struct rocegw_import_region {
  struct rocegw_request header;
  uint64_t address; /* page aligned */
  uint64_t length;  /* whole pages */
};

/* Since minor 15: an allocation in the memory of a GPU. A registration in such a region must lie in
 * it completely; its key grants no atomics. */
enum rocegw_device_kind {
  ROCEGW_DEVICE_CUDA = 1,
  ROCEGW_DEVICE_HIP = 2,
  /* The request comes with a descriptor of the allocation, and the handle means nothing. */
  ROCEGW_DEVICE_CUDA_DESCRIPTOR = 3,
  ROCEGW_DEVICE_HIP_DESCRIPTOR = 4
};
struct rocegw_import_device {
  struct rocegw_request header;
  uint32_t kind; /* enum rocegw_device_kind */
  uint32_t reserved;
  uint64_t address;   /* of the allocation in the client */
  uint64_t length;    /* bytes of it */
  uint8_t device[16]; /* UUID of the GPU */
  /* CUipcMemHandle, hipIpcMemHandle_t; means nothing to a gateway in the program's own process */
  uint8_t handle[64];
};

#endif /* ROCEGW_ABI_MEMORY_H */
