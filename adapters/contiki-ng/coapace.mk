# To be included by a project's Makefile, before Contiki-NG's Makefile.include.
COAPACE := $(dir $(lastword $(MAKEFILE_LIST)))
COAPACE_WITH ?= EBB
PROJECTDIRS += $(COAPACE) $(COAPACE)../common $(COAPACE)../../c
PROJECT_SOURCEFILES += coapace_contiki.c coapace_peers.c coapace.c
CFLAGS += -DCOAPACE_WITH_$(COAPACE_WITH)=1 -I$(COAPACE)../common -I$(COAPACE)../../c
# The functions of coap-transactions.c are called through the adapter.
LDFLAGS += -Wl,--wrap=coap_send_transaction -Wl,--wrap=coap_clear_transaction
