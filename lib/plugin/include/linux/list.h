/* Doubly linked lists: those of the plugin's own, and those that a handler follows in the target. */
#ifndef KTRACE_LINUX_LIST_H
#define KTRACE_LINUX_LIST_H

#include <linux/kernel.h>
#include <linux/types.h>

#define LIST_HEAD_INIT(name)                                                                                           \
    { &(name), &(name) }
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)

static inline void INIT_LIST_HEAD(struct list_head *list) { list->next = list->prev = list; }
static inline void ktrace_list_between(struct list_head *entry, struct list_head *before, struct list_head *after) {
    entry->prev = before;
    entry->next = after;
    before->next = after->prev = entry;
}
static inline void list_add(struct list_head *entry, struct list_head *head) {
    ktrace_list_between(entry, head, head->next);
}
static inline void list_add_tail(struct list_head *entry, struct list_head *head) {
    ktrace_list_between(entry, head->prev, head);
}
static inline void list_del(struct list_head *entry) {
    entry->prev->next = entry->next;
    entry->next->prev = entry->prev;
    entry->next = entry->prev = (struct list_head *)0;
}
static inline void list_del_init(struct list_head *entry) {
    list_del(entry);
    INIT_LIST_HEAD(entry);
}
static inline int list_empty(const struct list_head *head) { return head->next == head; }

#define list_entry(pointer, type, member) container_of(pointer, type, member)
#define list_first_entry(head, type, member) list_entry((head)->next, type, member)
#define list_for_each(at, head) for ((at) = (head)->next; (at) != (head); (at) = (at)->next)
#define list_for_each_safe(at, then, head)                                                                             \
    for ((at) = (head)->next, (then) = (at)->next; (at) != (head); (at) = (then), (then) = (at)->next)
#define list_for_each_entry(at, head, member)                                                                          \
    for ((at) = list_entry((head)->next, __typeof__(*(at)), member); &(at)->member != (head);                          \
         (at) = list_entry((at)->member.next, __typeof__(*(at)), member))
#define list_for_each_entry_safe(at, then, head, member)                                                               \
    for ((at) = list_entry((head)->next, __typeof__(*(at)), member),                                                   \
        (then) = list_entry((at)->member.next, __typeof__(*(at)), member);                                             \
         &(at)->member != (head); (at) = (then), (then) = list_entry((at)->member.next, __typeof__(*(at)), member))

#endif
