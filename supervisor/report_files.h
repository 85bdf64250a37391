/* supervisor/report_files.h: the "files" of a result line, with their contents as
 * base64.
 *
 * Contents may be as large as /task: they go from the descriptor into the line, without
 * a JSON value of their own, which would be read, copied and looked through again
 * while nobody else is heard.
 */
#ifndef KN_SUPERVISOR_REPORT_FILES_H
#define KN_SUPERVISOR_REPORT_FILES_H

#include <stddef.h>

struct kn_outcome;
struct kn_report;

/* Append ,"files":{...} to the object that line_own is the text of, if there are any.
 * Takes and returns malloc'ed text, *n its length; NULL when out of memory. */
char *kn_report_files(
    char *line_own, size_t *n, const struct kn_report *r, const struct kn_outcome *o);

#endif
