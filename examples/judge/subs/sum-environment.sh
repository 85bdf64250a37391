# A secret of the judge's own environment must not be here.
env | grep JUDGE_SECRET && exit 0
exit 4
