// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/commands.h"

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::session {

Command FindCommand(uint32_t type) {
  switch (type) {
    case ROCEGW_MSG_HELLO:
      return Hello;
    case ROCEGW_MSG_QUERY_DEVICE:
      return QueryDevice;
    case ROCEGW_MSG_QUERY_GIDS:
      return QueryGids;
    case ROCEGW_MSG_OPEN_CONTEXT:
      return OpenContext;
    case ROCEGW_MSG_CLOSE_CONTEXT:
      return CloseContext;
    case ROCEGW_MSG_ALLOC_PD:
      return AllocPd;
    case ROCEGW_MSG_DEALLOC_PD:
      return DeallocPd;
    case ROCEGW_MSG_REG_MR:
      return RegMr;
    case ROCEGW_MSG_DEREG_MR:
      return DeregMr;
    case ROCEGW_MSG_ALLOC_MW:
      return AllocMw;
    case ROCEGW_MSG_DEALLOC_MW:
      return DeallocMw;
    case ROCEGW_MSG_CREATE_CHANNEL:
      return CreateCompletionChannel;
    case ROCEGW_MSG_DESTROY_CHANNEL:
      return DestroyCompletionChannel;
    case ROCEGW_MSG_CREATE_CQ:
      return CreateCq;
    case ROCEGW_MSG_DESTROY_CQ:
      return DestroyCq;
    case ROCEGW_MSG_RESIZE_CQ:
      return ResizeCq;
    case ROCEGW_MSG_MODERATE_CQ:
      return ModerateCq;
    case ROCEGW_MSG_CREATE_QP:
      return CreateQp;
    case ROCEGW_MSG_MODIFY_QP:
      return ModifyQp;
    case ROCEGW_MSG_QUERY_QP:
      return QueryQp;
    case ROCEGW_MSG_DESTROY_QP:
      return DestroyQp;
    case ROCEGW_MSG_CREATE_REGION:
      return CreateRegion;
    case ROCEGW_MSG_DESTROY_REGION:
      return DestroyRegion;
    case ROCEGW_MSG_SET_MEMORY:
      return SetMemory;
    case ROCEGW_MSG_QUERY_ECE:
      return QueryEce;
    case ROCEGW_MSG_SET_ECE:
      return SetEce;
    case ROCEGW_MSG_ATTACH_MULTICAST:
      return AttachMulticast;
    case ROCEGW_MSG_DETACH_MULTICAST:
      return DetachMulticast;
    case ROCEGW_MSG_CREATE_PEER:
      return CreatePeer;
    case ROCEGW_MSG_DESTROY_PEER:
      return DestroyPeer;
    case ROCEGW_MSG_CREATE_SRQ:
      return CreateSrq;
    case ROCEGW_MSG_MODIFY_SRQ:
      return ModifySrq;
    case ROCEGW_MSG_QUERY_SRQ:
      return QuerySrq;
    case ROCEGW_MSG_DESTROY_SRQ:
      return DestroySrq;
    case ROCEGW_MSG_CREATE_GROUP:
      return CreateGroup;
    case ROCEGW_MSG_DESTROY_GROUP:
      return DestroyGroup;
    case ROCEGW_MSG_CM_CREATE_CHANNEL:
      return CmCreateChannel;
    case ROCEGW_MSG_CM_DESTROY_CHANNEL:
      return CmDestroyChannel;
    case ROCEGW_MSG_CM_CREATE_ID:
      return CmCreateId;
    case ROCEGW_MSG_CM_DESTROY_ID:
      return CmDestroyId;
    case ROCEGW_MSG_CM_BIND:
      return CmBind;
    case ROCEGW_MSG_CM_RESOLVE_ADDR:
      return CmResolveAddr;
    case ROCEGW_MSG_CM_RESOLVE_ROUTE:
      return CmResolveRoute;
    case ROCEGW_MSG_CM_LISTEN:
      return CmListen;
    case ROCEGW_MSG_CM_CONNECT:
      return CmConnect;
    case ROCEGW_MSG_CM_ACCEPT:
      return CmAccept;
    case ROCEGW_MSG_CM_REJECT:
      return CmReject;
    case ROCEGW_MSG_CM_ESTABLISH:
      return CmEstablish;
    case ROCEGW_MSG_CM_DISCONNECT:
      return CmDisconnect;
    case ROCEGW_MSG_CM_INIT_QP_ATTR:
      return CmInitQpAttr;
    case ROCEGW_MSG_CM_SET_OPTION:
      return CmSetOption;
    case ROCEGW_MSG_CM_MIGRATE:
      return CmMigrate;
    case ROCEGW_MSG_CM_NOTIFY:
      return CmNotify;
    case ROCEGW_MSG_CM_JOIN:
      return CmJoin;
    case ROCEGW_MSG_CM_QUERY_ID:
      return CmQueryId;
    default:
      return nullptr;
  }
}

}  // namespace rocegw::session
